"""The command of `grms` for a relay, where sites meet that listen to nobody.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

from pathlib import Path

import click


@click.command(short_help="Run a relay, where sites meet that only call out.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--check", is_flag=True, help="Check the configuration and the keys, and serve nothing."
)
def relay(config: Path, *, check: bool) -> None:
    """Run a relay until SIGTERM or Ctrl-C; SIGHUP lets it read its configuration anew.

    Sites that accept no connections keep some open to the relay, and call each other over these. It passes on
    what they encrypt for each other; it learns who calls whom, when, and how much.

    CONFIG is the relay's configuration; docs/how-to/calling-out.md describes it.
    """
    from grms.daemon.logs import configure_logs  # noqa: PLC0415  # see the module's docstring
    from grms.relay.config import load_relay  # noqa: PLC0415  # same

    settings = load_relay(config)
    from grms.relay.daemon import check_keys, serve  # noqa: PLC0415  # same

    if check:
        check_keys(settings, config)
        groups = "; ".join(", ".join(group) for group in settings.meet)
        click.echo(f"valid: relay {settings.name} at {settings.listen}, who may meet: {groups}")
        return
    log = configure_logs(settings.name, form=settings.logging.format, level=settings.logging.level)
    serve(settings, config, log)
