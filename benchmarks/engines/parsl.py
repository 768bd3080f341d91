"""Parsl's SlurmProvider: `sbatch FILE`, `sacct -X --job`, `scancel`; its blocks need no folder of its own."""

from importlib import import_module
from typing import Any

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, Told, here, told, until


def main() -> None:
    """Submits the jobs, cancels some, and tells what became of all."""
    providers: Any = import_module("parsl.providers")
    launchers: Any = import_module("parsl.launchers")
    plan = here()

    def provider(limit_min: int) -> Any:
        made = providers.SlurmProvider(
            walltime=f"00:{limit_min:02}:00",
            exclusive=False,
            launcher=launchers.SimpleLauncher(),
            cmd_timeout=60,
        )
        made.script_dir = str(plan.folder)
        return made

    limits = {limit: provider(limit) for limit in (LONG_MIN, *LIMIT_MIN.values())}
    jobs = [
        (limits[LIMIT_MIN.get(kind, LONG_MIN)], plan.command(number))
        for number, kind in enumerate(KINDS)
    ]
    submitted = [
        (each, each.submit(command, 1, f"job-{number}"))
        for number, (each, command) in enumerate(jobs)
    ]
    found: dict[int, Told] = {}
    plan.until_killed()
    for number in plan.numbers("gone"):
        each, job = submitted[number]
        each.cancel([job])
        found[number] = Told(each.resources[job]["status"].state.name)

    def all_ended() -> bool:
        for each in limits.values():
            mine = [(number, job) for number, (own, job) in enumerate(submitted) if own is each]
            states = each.status([job for _, job in mine])
            for (number, _), status in zip(mine, states, strict=True):
                # Later it takes those that have ended, and for which it does not ask any more, for completed.
                if status.terminal and number not in found:
                    found[number] = Told(status.state.name)
        return len(found) == len(KINDS)

    until(all_ended)
    told(found)


if __name__ == "__main__":
    main()
