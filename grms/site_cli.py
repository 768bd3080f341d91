"""The commands of `grms` around a site's daemon: it serves, users submit, operators look.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

from pathlib import Path

import click

COMMANDS: list[click.Command] = []
"""What `grms` gets from here."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--until-eof",
    is_flag=True,
    help="Stop when standard input ends too: whoever started the daemon is gone.",
)
def serve(config: Path, *, until_eof: bool) -> None:
    """Run a site's daemon until SIGTERM or Ctrl-C; a second one ends it at once.

    CONFIG is the site's configuration; docs/operating.md describes it.
    """
    from grms.site.config_files import load_config  # noqa: PLC0415  # see the module's docstring
    from grms.site.daemon import serve as run  # noqa: PLC0415  # same
    from grms.site.logs import configure_logs  # noqa: PLC0415  # same

    settings = load_config(config)
    log = configure_logs(settings.name, form=settings.logging.format, level=settings.logging.level)
    run(config, log, until_eof=until_eof)


COMMANDS += [serve]
