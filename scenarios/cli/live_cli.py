"""The parts of `scenario` that start daemons: `up` and `down`, and what `run --live` tells.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrms_sim.util.option_fields import FloatRange
from scenarios.library import scenario_path
from scenarios.util.errors import LiveError

if TYPE_CHECKING:
    from scenarios.cli.progress import Bars
    from scenarios.run.replay import Run
    from scenarios.spec.spec import ScenarioSpec

SPEED_MAX = 1e9
"""Seconds of a scaled clock per real one, as in a site's configuration."""

PLAY_SPEED = 600.0
"""The same with a spectator: ten minutes a second."""

PLAY_SPEED_BROKER = 200.0
"""The same with a broker, which needs real time to search and to book between a plan and its
tasks."""

PLAY_BEGIN_S = 5.0
"""Real seconds from the start of the daemons to the first job."""


def live_folder(folder: Path) -> Path:
    """Returns the folder of a run's daemons; LiveError if they cannot work there."""
    from scenarios.live.folder import check_claim  # noqa: PLC0415  # see the docstring

    named = folder if folder.name not in ("", "..") else folder.resolve()
    if not named.name:
        raise LiveError(f"there is no room beside {folder}; name another folder with --output")
    place = named.with_name(f"{named.name}-live")
    check_claim(place)
    return place


def run_live(
    done: "Run", place: Path, speed: float | None, shown: "Bars", *, html: bool
) -> tuple[str, str]:
    """Returns messages and errors of a replay through daemons."""
    from scenarios.live.live import run_in_lock_step, run_scaled  # noqa: PLC0415  # see the docstring

    expected = done.result.schedule

    def progress(arrived: int) -> None:
        shown.update("through daemons", arrived, len(expected))

    problem = ""
    if speed is None:
        result = run_in_lock_step(done.spec, expected, place, progress)
        if result.difference:
            problem = f"the schedules differ: {result.difference}"
        outcome = "" if problem else "The schedule is identical with the replay in one process."
    else:
        result = run_scaled(done.spec, expected, place, speed, progress)
        from scenarios.live.outcome import scaled_outcome  # noqa: PLC0415  # see the docstring

        outcome, problem = scaled_outcome(done, result, html=html)
    words = (
        f"Live: {len(expected):,} jobs through {len(expected.machines)} daemons in "
        f"{result.elapsed_s:.1f} s ({result.arrivals_per_s:,.0f} a second); journals and logs in "
        f"{place}"
    )
    if outcome:
        words += f"\n{outcome}"
    if done.spec.broker is not None:
        words += "\nOf the broker's workflows nothing went through the daemons."
    return words, problem


@click.command(short_help="Start the daemons of a scenario's sites and its broker.")
@click.argument("scenario")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="For journals and logs.  [default: out/NAME-up]",
)
@click.option(
    "--play",
    is_flag=True,
    help="Let the scenario's users submit their jobs and workflows, on a fast clock, until Ctrl-C.",
)
@click.option(
    "--speed",
    type=FloatRange(0, SPEED_MAX, min_open=True),
    help=f"With --play: seconds of the sites' clock for a real one.  "
    f"[default: {PLAY_SPEED:,.0f}, with a broker {PLAY_SPEED_BROKER:,.0f}]",
)
@click.option(
    "--open",
    "open_browser",
    is_flag=True,
    help="Play, and show the dashboards of the first site and of the broker in the browser.",
)
def up(
    scenario: str, *, folder: Path | None, play: bool, speed: float | None, open_browser: bool
) -> None:
    """Start the daemons of a scenario's sites and its broker, to play with, each with a dashboard.

    They run on real time, and on a faster clock with --play or --open.
    """
    from scenarios.live.brokers import BROKER  # noqa: PLC0415  # see the module's docstring
    from scenarios.live.detached import has_dashboards  # noqa: PLC0415  # same
    from scenarios.live.detached import up as start  # noqa: PLC0415  # same
    from scenarios.spec.files import load_spec  # noqa: PLC0415  # same

    play = play or open_browser
    if speed is not None and not play:
        raise click.UsageError("--speed is of a scenario that is played: it goes with --play")
    spec = load_spec(scenario_path(scenario))
    folder = folder or Path("out", f"{spec.name}-up")
    fast, origin = 1.0, 0.0
    if play:
        from scenarios.live.demo import first_arrival  # noqa: PLC0415  # same

        usual = PLAY_SPEED if spec.broker is None else PLAY_SPEED_BROKER
        fast = usual if speed is None else speed
        origin = time.time() + PLAY_BEGIN_S - first_arrival(spec) / fast
    sockets = start(spec, folder, speed=fast, origin=origin)
    for name, socket in sockets.items():
        click.echo(f"{name}: {socket}")
        if has_dashboards():
            click.echo(
                f"  {'gorba' if name == BROKER else 'grms'} dashboard --socket {socket} --open"
            )
    first = next(iter(sockets))
    if not has_dashboards():
        click.echo("no dashboards: pip install 'hanse[dashboard]'")
    elif open_browser:
        _open_pages({name: sockets[name] for name in (first, BROKER) if name in sockets})
    if play:
        _play(spec, sockets, speed=fast, origin=origin)
    else:
        click.echo(
            f"try: grms submit --socket {sockets[first]} --processors 1 --time 60 --run-time 5 --wait"
        )
        if spec.broker is not None:
            socket = list(sockets.values())[-1]
            click.echo(f"and: gorba resources list --socket {socket}")
    click.echo(f"end: scenario down {folder}")


def _open_pages(sockets: Mapping[str, Path]) -> None:
    import webbrowser  # noqa: PLC0415  # only here

    from scenarios.live.detached import dashboard_link  # noqa: PLC0415  # see the module's docstring

    for name, socket in sockets.items():
        webbrowser.open(dashboard_link(name, socket))


def _play(
    spec: "ScenarioSpec", sockets: Mapping[str, Path], *, speed: float, origin: float
) -> None:
    from scenarios.cli.progress import bars  # noqa: PLC0415  # same
    from scenarios.live.demo import play  # noqa: PLC0415  # see the module's docstring

    click.echo(f"users submit, {speed:,.0f} times as fast as real time; Ctrl-C ends it")
    with bars() as shown:
        try:
            count = play(
                spec,
                sockets,
                speed=speed,
                origin=origin,
                progress=lambda done, total: shown.update("submitted", done, total),
            )
        except KeyboardInterrupt:
            click.echo("no more is submitted; the daemons go on")
            return
    click.echo(f"{count:,} jobs were submitted; the daemons go on")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def down(folder: Path) -> None:
    """End the daemons that `scenario up` has left running.

    FOLDER is where their journals and logs are, or the scenario's name.
    """
    from scenarios.live.detached import down as end  # noqa: PLC0415  # see the module's docstring

    if not folder.exists() and Path("out", f"{folder}-up").exists():
        folder = Path("out", f"{folder}-up")
    click.echo(f"ended: {', '.join(end(folder)) or 'nothing was running any more'}")
