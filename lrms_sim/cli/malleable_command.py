"""The commands `lrms-sim utility …`. Slow imports happen in the command that needs them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lrms_sim.cli.log_options import FILE, check_outputs, user_errors
from lrms_sim.cli.malleable_options import (
    SECONDS,
    machine_of,
    machine_options,
    ordered_by,
    source_of,
    source_options,
)
from lrms_sim.cli.running import bar, open_console
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.option_fields import FloatRange, two_days

POLICIES_SHOWN = (
    "fcfs,easy,density,edf,best-fit,over-aggressive,pre-aggressive,both-aggressive,"
    "over-value,pre-value,both-value,both-greedy,replan,replan-rigid"
)
"""Default of `compare`."""


@click.group()
def utility() -> None:
    """Schedule jobs whose utility falls with time: suspend, squeeze, learn.

    SOURCE is a log (.swf, .swf.gz), a workload as CSV, or the word `model`: the random jobs of the
    paper on utility-based scheduling, 24 processors, time in steps.

    \b
    Examples:
      lrms-sim utility run model --policy both-aggressive
      lrms-sim utility train KTH-SP2-1996-2.swf.gz --window-days 150:330 -o kth.json
      lrms-sim utility run KTH-SP2-1996-2.swf.gz --window-days 0:150 --policy both-value --value kth.json
      lrms-sim utility compare KTH-SP2-1996-2.swf.gz --learn-days 150:330 --test-days 0:150
    """  # noqa: D301  # \b keeps the lines of the examples as they are


@utility.command()
@click.argument("source", metavar="SOURCE")
@click.option("--policy", default="both-aggressive", show_default=True, metavar="NAME", help="`lrms-sim utility policies` lists them.")  # fmt: skip
@click.option("--value", type=FILE, metavar="FILE", help="Value function, for policies by value.")
@click.option("--weights", metavar="W1,…,W8", help="Replan by an order with these weights, instead of --policy.")  # fmt: skip
@click.option("--window-days", metavar="A:B", help="Only jobs submitted from day A until day B.")
@click.option("--horizon", type=SECONDS, metavar="S", help="Look at nothing that happens later.  [default: the last end; 20000 of the model]")  # fmt: skip
@click.option("--results", type=FILE, metavar="FILE", help="Write what became of each job: .csv.")
@click.option(
    "--log", "log_file", type=FILE, metavar="FILE", help="Write who held what when: .csv."
)
@click.option("--gantt", type=FILE, metavar="FILE", help="Write a picture: .svg.")
@click.option("--picture", metavar="A:B", help="The picture's span, in days (steps of the model).")
@json_option("lrms-sim-utility-run", "lrms_sim.cli.malleable_models:UtilityRunOutput")
@source_options
@machine_options
def run(
    source: str,
    *,
    policy: str,
    value: Path | None,
    weights: str | None,
    window_days: str | None,
    horizon: float | None,
    results: Path | None,
    log_file: Path | None,
    gantt: Path | None,
    picture: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Run one policy.

    \b
    Example, with a picture of the first 200 steps:
      lrms-sim utility run model --rate 0.3 --policy replan --gantt run.svg --picture 0:200
    """  # noqa: D301  # as above
    from lrms_sim.malleable import workload_files  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.malleable.machine import simulate  # noqa: PLC0415  # same
    from lrms_sim.malleable.model import TEST_STEPS  # noqa: PLC0415  # same
    from lrms_sim.malleable.policies import name_of, policy_by_name  # noqa: PLC0415  # same
    from lrms_sim.malleable.value import load_value_function  # noqa: PLC0415  # same
    from lrms_sim.report.malleable_gantt import draw  # noqa: PLC0415  # same
    from lrms_sim.report.malleable_report import FORMAT, figures_of, print_figures  # noqa: PLC0415  # same

    check_outputs([results, log_file, gantt], [Path(source), Path(given["rules"]), value])
    first, last = two_days(window_days, upward=False)
    begin, end = two_days(picture, "--picture", upward=False)
    with user_errors():
        chosen = policy_by_name(policy) if weights is None else ordered_by(weights)
        policy = name_of(chosen)
        known = load_value_function(value) if value is not None else None
        if chosen.by_value and known is None:
            raise ValueError(f"{policy} needs a value function: --value FILE, as `train` writes it")
        found = source_of(source, given)
        options = machine_of(given, seconds=found.seconds)
        workload = found.window(first, last)
        with bar("running", len(workload)) as progress:
            outcome = simulate(
                workload,
                found.processors,
                chosen,
                options=options,
                value=known,
                origin=(first or 0.0) * found.unit,
                horizon=found.end(TEST_STEPS) if horizon is None else horizon,
                log=log_file is not None or gantt is not None,
                progress=progress,
            )
        if gantt is not None:
            assert outcome.log is not None
            span = [None if each is None else each * found.unit for each in (begin, end)]
            title = f"{found.name}: {policy}"
            gantt.write_text(draw(outcome.log, title=title, begin=span[0], end=span[1]), "utf-8")
    if results is not None:
        workload_files.write_results(outcome, results)
    if log_file is not None:
        assert outcome.log is not None
        workload_files.write_log(outcome.log, log_file, horizon)
    figures = figures_of(policy, outcome)
    if as_json:
        said = {"source": found.name, "processors": found.processors, **asdict(figures)}
        print_json("lrms-sim-utility-run", {"format": FORMAT, **said})
        return
    print_figures(open_console(), [[figures]], f"{found.name}, {found.processors} processors")
    for path in (results, log_file, gantt):
        if path is not None:
            click.echo(f"Written to {path}")


@utility.command()
@click.argument("source", metavar="SOURCE")
@click.option("--policy", default="both-value", show_default=True, metavar="NAME", help="over-value, pre-value, both-value.")  # fmt: skip
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE", help="The value function: .json.")  # fmt: skip
@click.option("--window-days", metavar="A:B", help="Only jobs submitted from day A until day B.")
@click.option("--passes", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Over the workload.")  # fmt: skip
@click.option("--alpha", type=FloatRange(0, 1, min_open=True), default=0.003, show_default=True, help="The learning rate.")  # fmt: skip
@click.option("--delay", type=FloatRange(0), metavar="B", help="The rate falls as alpha/(B+t); 0 is the paper's 1/t with --alpha 1.")  # fmt: skip
@click.option("--rho", type=click.Choice(["per-step", "per-update"]), default="per-step", show_default=True, help="What the average reward is of.")  # fmt: skip
@click.option("--time-scale", type=FloatRange(0, min_open=True), metavar="S", help="What counts as a long time.  [default: the longest request]")  # fmt: skip
@click.option("--horizon", type=SECONDS, metavar="S", help="Look at nothing that happens later, in each pass.  [default: the last end; 25000 of the model]")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on after the passes that are done.")
@json_option("lrms-sim-utility-train", "lrms_sim.cli.malleable_models:UtilityTrainingOutput")
@source_options
@machine_options
def train(
    source: str, *, output: Path, as_json: bool, window_days: str | None, **given: Any
) -> None:
    """Learn a value function by temporal differences.

    After Ctrl-C the same command with --resume goes on after the last pass that was done. The seed
    draws the jobs of the model, and the order of a log's weeks; 0 leaves it as it is.
    """
    from lrms_sim.malleable.trainer import Lessons, teach  # noqa: PLC0415  # see the module's docstring

    check_outputs([output], [Path(source), Path(given["rules"])])
    with user_errors():
        lessons = Lessons(
            policy=given.pop("policy"),
            passes=given.pop("passes"),
            alpha=given.pop("alpha"),
            delay=given.pop("delay"),
            per_step=given.pop("rho") == "per-step",
            time_scale=given.pop("time_scale"),
            horizon=given.pop("horizon"),
            seed=given["seed"],
            window=two_days(window_days, upward=False),
        )
        resume = given.pop("resume")
        found = source_of(source, given, training=True)
        options = machine_of(given, seconds=found.seconds)
        with bar("learning", lessons.passes) as progress:
            training = teach(found, lessons, options, output, resume=resume, progress=progress)
    if as_json:
        from lrms_sim.malleable.training import checkpoint  # noqa: PLC0415  # same
        from lrms_sim.malleable.value import value_function_to_document  # noqa: PLC0415  # same
        from lrms_sim.report.malleable_report import FORMAT  # noqa: PLC0415  # same

        value = value_function_to_document(training.value)
        said = {"format": FORMAT, "value": value, "training": checkpoint(training)}
        print_json("lrms-sim-utility-train", said)
        return
    from lrms_sim.malleable.value import RULES  # noqa: PLC0415  # same

    for lesson in training.lessons:
        click.echo(
            f"pass {lesson.number}: {100 * lesson.share:.2f} % of the possible utility while "
            f"learning, {lesson.updates:,} updates"
        )
    for rule, p in zip(RULES, training.value.p, strict=True):
        click.echo(f"  {rule}  {p: .6g}")
    click.echo(f"Written to {output}")


@utility.command()
@click.argument("source", metavar="SOURCE")
@click.option("--policies", "names", default=POLICIES_SHOWN, metavar="A,B,…", help="Their names.  [default: fourteen]")  # fmt: skip
@click.option("--learn-days", metavar="A:B", help="The window to learn on.  [default: all]")
@click.option("--test-days", metavar="A:B", help="The window to judge on.  [default: all]")
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Training runs of each policy that learns.")  # fmt: skip
@click.option("--results", type=FILE, metavar="FILE", help="Keep the figures of every run: .json; what it holds is not run again.")  # fmt: skip
@click.option("--picture", type=FILE, metavar="FILE", help="Write bars of share and suspensions: .svg.")  # fmt: skip
@json_option("lrms-sim-utility-compare", "lrms_sim.cli.malleable_models:UtilityComparisonOutput")
@source_options
@machine_options
def compare(
    source: str,
    *,
    names: str,
    learn_days: str | None,
    test_days: str | None,
    seeds: int,
    results: Path | None,
    picture: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare policies: learn in one window, judge in another.

    With the model, learning and testing are on jobs of different seeds. After Ctrl-C the same
    command goes on with the runs that --results lacks.

    \b
    Example:
      lrms-sim utility compare CTC-SP2-1996-3.1-cln.swf.gz --rules tight \\
        --learn-days 150:330 --test-days 0:150 --picture ctc.svg
    """  # noqa: D301  # as above
    from lrms_sim.report.malleable_comparison import Plan, compare_policies, draw_bars  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.report.malleable_report import FORMAT, print_figures  # noqa: PLC0415  # same

    check_outputs([results, picture], [Path(source), Path(given["rules"])])
    with user_errors():
        seed = given["seed"]
        found = source_of(source, given)
        plan: Plan = Plan(
            tuple(name.strip() for name in names.split(",")),
            two_days(learn_days, "--learn-days", upward=False),
            two_days(test_days, "--test-days", upward=False),
            seeds,
            seed,
            machine_of(given, seconds=found.seconds),
        )
        with bar("comparing", plan.total) as progress:
            groups = compare_policies(found, plan, results, progress)
    if picture is not None:
        picture.write_text(draw_bars(groups, found.name), encoding="utf-8")
    if as_json:
        runs = [asdict(each) for group in groups for each in group]
        said = {"source": found.name, "processors": found.processors, "runs": runs}
        print_json("lrms-sim-utility-compare", {"format": FORMAT, **said})
        return
    print_figures(open_console(), groups, f"{found.name}, {found.processors} processors")
    for path in (results, picture):
        if path is not None:
            click.echo(f"Written to {path}")


@utility.command()
@json_option("lrms-sim-utility-policies", "lrms_sim.cli.malleable_models:PoliciesOutput")
def policies(*, as_json: bool) -> None:
    """List the policies."""
    from lrms_sim.malleable.policies import SENTENCES  # noqa: PLC0415  # see the module's docstring

    if as_json:
        named = [{"name": name, "description": words} for name, words in SENTENCES.items()]
        print_json("lrms-sim-utility-policies", {"policies": named})
        return
    for name, sentence in SENTENCES.items():
        click.echo(f"{name:<17}{sentence}")
