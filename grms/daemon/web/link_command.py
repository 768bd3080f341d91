"""The command of `grms` and `gorba` that prints a link to a daemon's pages."""

from collections.abc import Callable
from pathlib import Path

import click

from grms.daemon.timeout_option import timeout_option


def link_command(
    daemon: str,
    pages: str,
    *,
    variable: str,
    socket_in: Callable[[Path], str],
    link: Callable[[Path, float], str],
    operators: bool = False,
) -> click.Command:
    """Returns the command `dashboard`.

    Args:
        daemon: its kind, which is another name of its option `--socket`.
        pages: what it serves, in a sentence.
        variable: names the daemon's socket if no option does.
        socket_in: returns the socket's path in a configuration.
        link: requests a link from the daemon at a socket, with a timeout in seconds.
        operators: who gets one.
    """

    @click.command("dashboard", short_help=f"Print a link to a {daemon}'s dashboard.")
    @click.argument("config", type=click.Path(path_type=Path, dir_okay=False), required=False)
    @click.option(
        "--socket",
        f"--{daemon}",
        "socket",
        envvar=variable,
        type=click.Path(path_type=Path),
        metavar="SOCKET",
        help=f"The {daemon}'s Unix socket, in place of CONFIG; also from the variable {variable}.",
    )
    @timeout_option
    @click.option("--open", "open_browser", is_flag=True, help="Show it in the browser too.")
    @click.pass_context
    def dashboard(
        context: click.Context,
        config: Path | None,
        *,
        socket: Path | None,
        timeout_s: float,
        open_browser: bool,
    ) -> None:
        if config is not None:
            # The variable is for all commands; CONFIG is for this one, and takes precedence.
            if context.get_parameter_source("socket") is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError("CONFIG and --socket exclude each other")
            socket = Path(socket_in(config))
        if socket is None:
            raise click.UsageError(f"name the {daemon}'s configuration, or its --socket")
        address = link(socket, timeout_s)
        click.echo(address)
        if open_browser:
            import webbrowser  # noqa: PLC0415  # only here

            webbrowser.open(address)

    dashboard.help = (
        f"Print a link to a {daemon}'s dashboard{'; for operators' if operators else ''}.\n\n"
        f"CONFIG is the {daemon}'s configuration, of which the socket is taken; its part [dashboard] says "
        f"where the daemon serves the {pages}. The daemon is asked for the link, which lets one browser in, "
        "once and for a minute; what it has opened lasts until the daemon ends, twelve hours at most."
    )
    return dashboard
