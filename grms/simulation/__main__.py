"""Replays runs of the fault test: `python -m grms.simulation --seed N`."""

import sys

import click

from grms.simulation.fault_run import run_trial


@click.command()
@click.option("--seed", type=click.IntRange(0), required=True, help="Of the first run.")
@click.option(
    "--count", type=click.IntRange(1), default=1, help="Runs, with seeds one after another."
)
@click.option(
    "--on-lost",
    type=click.Choice(["wait", "resubmit"]),
    default="wait",
    help="What sites do about jobs at a lost partner.",
)
@click.option("--rails", is_flag=True, help="Sites keep to constraints.")
@click.option("--reoffers", is_flag=True, help="Sites offer again what waits.")
@click.option(
    "--rogues", is_flag=True, help="One of the sites is a Byzantine partner in every run."
)
@click.option("--arrays", is_flag=True, help="Users also hand in arrays and dependent jobs.")
@click.option("--returns", is_flag=True, help="Batch systems end partners' jobs for other ones.")
@click.option("--one-way", is_flag=True, help="Links also break in one direction.")
@click.option("--account", is_flag=True, help="Sites keep an account of themselves.")
def main(
    seed: int,
    count: int,
    on_lost: str,
    *,
    rails: bool,
    reoffers: bool,
    rogues: bool,
    arrays: bool,
    returns: bool,
    one_way: bool,
    account: bool,
) -> None:
    """Replays runs of the fault test; tells the story where it is one run."""
    tell = click.echo if count == 1 else None
    bad = 0
    for number in range(seed, seed + count):
        verdict = run_trial(
            number,
            tell=tell,
            on_lost="wait" if on_lost == "wait" else "resubmit",
            rails=rails,
            reoffers=reoffers,
            rogues=rogues,
            arrays=arrays,
            returns=returns,
            one_way=one_way,
            account=account,
        )
        if count == 1:
            click.echo(
                f"{verdict.jobs} jobs, {verdict.delegated} of them run elsewhere, "
                f"{verdict.cancelled} cancelled; {verdict.crashes} crashes"
                f"{f'; {verdict.moved} left a queue' if reoffers else ''}"
                f"{f'; {verdict.held} were held, {verdict.hopeless} could not begin' if arrays else ''}"
                f"{f'; {verdict.sent_home} were sent home' if returns else ''}"
                f"{f'; the Byzantine partner {verdict.rogue}' if verdict.rogue else ''}"
            )
        for problem in verdict.problems:
            click.echo(f"seed {number}: {problem}")
        if verdict.problems:
            bad += 1
            more = "".join(
                f" --{name}"
                for name, wanted in (
                    ("rails", rails),
                    ("reoffers", reoffers),
                    ("rogues", rogues),
                    ("arrays", arrays),
                    ("returns", returns),
                    ("one-way", one_way),
                    ("account", account),
                )
                if wanted
            )
            click.echo(
                f"to replay: python -m grms.simulation --seed {number} --on-lost {on_lost}{more}"
            )
    click.echo(f"{count - bad} of {count} runs as they have to be")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
