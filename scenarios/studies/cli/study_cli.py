"""The commands `scenario study …`."""

from dataclasses import replace
from typing import Any

import click

from lrms_sim.util.executors import Workers, workers_of
from lrms_sim.util.messages import unknown
from lrms_sim.util.option_fields import field_options
from lrms_sim.util.plugins import STUDY_GROUP, PluginError, is_plugin, load_plugin, plugin_names
from scenarios.studies.common.options import run_and_tell
from scenarios.studies.electricity.options import StudyOptions as ElectricityOptions
from scenarios.studies.kinds_of_nodes.options import StudyOptions as NodeOptions
from scenarios.studies.malleability.options import StudyOptions as MalleableOptions
from scenarios.studies.nobody_loses.options import PARTS
from scenarios.studies.nobody_loses.options import StudyOptions as ExchangeOptions
from scenarios.studies.questions_and_delays.options import StudyOptions as DelayOptions
from scenarios.studies.scale.options import StudyOptions as ScaleOptions


class _Studies(click.Group):
    """The studies below, and those of plugins, which are looked up for other names alone."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name in plugin_names(STUDY_GROUP) if name not in own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a study; of a plugin that cannot be used a command that says why."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or not is_plugin(STUDY_GROUP, cmd_name):
            return own
        try:
            command: click.Command = load_plugin(
                STUDY_GROUP,
                cmd_name,
                "study",
                lambda loaded: isinstance(loaded, click.Command),
                "a click.Command",
            )
        except PluginError as error:
            return _unusable(cmd_name, error)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(unknown("study", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def _unusable(name: str, error: PluginError) -> click.Command:
    # The help of all others shall not fail for it.
    def callback() -> None:
        raise error

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        name,
        context_settings=settings,
        callback=callback,
        add_help_option=False,
        short_help="Cannot be loaded; run it to see why.",
    )


@click.group(cls=_Studies, short_help="Run experiments of our own and of plugins.")
def study() -> None:
    """Run experiments of our own and of plugins, compared with what others have measured."""


@study.command("nobody-loses")
@field_options(ExchangeOptions)
def nobody_loses(*, parts: tuple[str, ...], **chosen: Any) -> None:
    """Whether exchange hurts a site: policies, grids, disciplines, months, Byzantine partners, chance.

    Replays the logs kth, ctc, sdsc05 and sdsc00, which it needs, in all grids of two to four
    sites, and compares the results with those of an independent program. It takes some ten minutes
    on two cores; after Ctrl-C the same command goes on.
    """
    options = ExchangeOptions(**chosen, parts=tuple(part for part in PARTS if part in parts))
    if options.complete:
        options = replace(options, draws=max(options.draws, 4))
    run_and_tell("nobody_loses", options)


@study.command("electricity")
@field_options(ElectricityOptions)
def electricity(**chosen: Any) -> None:
    """What exchange by price or carbon saves, next to fair exchange and none, and who waits for it.

    Replays parts of the logs kth, ctc and sdsc05 and three of Lublin's models with synthetic prices and carbon
    intensities by a stated model, jobs that wait for cheap hours, and exchange that prefers cheaper or cleaner
    sites; idle nodes on or off. Holds published claims against the results. It takes less than a minute on one
    core; after Ctrl-C the same command goes on.

    \b
    Example:
      scenario study electricity --grid models
    """  # noqa: D301  # click's mark for a block that is not wrapped
    run_and_tell("electricity", ElectricityOptions(**chosen))


@study.command("kinds-of-nodes")
@field_options(NodeOptions)
def kinds_of_nodes(**chosen: Any) -> None:
    """What exchange brings where sites have many GPUs, much memory or neither.

    Replays the logs ctc, kth and sdsc00, which it needs, on machines of nodes with memory and GPUs drawn by a
    stated model; with --pods also a table of pods that records them. Offers hold the whole request, or
    processors alone. It takes less than a minute on two cores; after Ctrl-C the same command goes on.

    \b
    Example:
      scenario study kinds-of-nodes --pods openb_pod_list_default.csv
    """  # noqa: D301  # click's mark for a block that is not wrapped
    run_and_tell("kinds_of_nodes", NodeOptions(**chosen))


@study.command("malleability")
@field_options(MalleableOptions)
def malleability(**chosen: Any) -> None:
    """What malleable jobs bring on recorded logs, by their share, next to EASY with perfect run times.

    Replays parts of the logs kth, ctc, sdsc05 and sdsc00, or of others, under policies that squeeze malleable jobs
    and suspend jobs, with 0 to 100 % of malleable jobs, and holds published claims against the results. It takes
    about a minute on two cores; after Ctrl-C the same command goes on.

    \b
    Example:
      scenario study malleability --workload kth --speedup amdahl:0.1
    """  # noqa: D301  # click's mark for a block that is not wrapped
    run_and_tell("malleability", MalleableOptions(**chosen))


@study.command("questions-and-delays")
@field_options(DelayOptions)
@click.option(
    "--complete", is_flag=True, help="Five draws at least, and two of half a year for each site."
)
@field_options(
    Workers,
    executor={"default": "processes", "help": "Who replays; the result is the same."},
)
def questions_and_delays(*, complete: bool, **chosen: Any) -> None:
    """What it does to the gain how many partners are asked, how long messages take, and clocks apart.

    Replays spans of the logs kth, ctc and sdsc05, which it needs, with EASY and FCFS, with rounds and
    without, and checks statements against the results. It takes some five minutes on two
    cores, --complete an hour; after Ctrl-C the same command goes on.
    """
    options = DelayOptions(chosen["folder"], chosen["draws"], workers=workers_of(chosen))
    if complete:
        options = replace(options, draws=max(options.draws, 5), half_year_draws=2)
    run_and_tell("questions_and_delays", options)


@study.command("scale")
@field_options(ScaleOptions)
def scale(**chosen: Any) -> None:
    """What exchange costs and brings among very many sites, and what few questions reach.

    Replays sites with workloads of a model that exchange jobs by fair exchange, with 1 to 16 partners asked and
    with all, sites that come and go, and sites that know few others; measures processor time, memory and gain.
    It takes some minutes; after Ctrl-C the same command goes on.

    \b
    Example:
      scenario study scale --sites 100,100000 --draws 1
    """  # noqa: D301  # click's mark for a block that is not wrapped
    run_and_tell("scale", ScaleOptions(**chosen))
