"""The option by which commands of `grms` and `gorba` limit how long they wait for a daemon."""

import click

from lrms_sim.util.option_fields import FloatRange

timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="Seconds in which an answer is to come.",
)
