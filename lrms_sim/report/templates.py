"""Templates of pages (jinja2), in which all text is escaped.

jinja2 is imported with the first page, to keep other commands fast.
"""

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def resource(package: str, name: str) -> str:
    """Returns the text of a file that lies in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def alone(drawing: str) -> str:
    """Returns a drawing of a page, an `<svg>` element, as a document that has the colours of pages."""
    style = "svg { background: var(--paper); font-family: system-ui, sans-serif; }\n"
    style += resource("lrms_sim.report", "colors.css") + resource("lrms_sim.report", "chart.css")
    head, _, rest = drawing.partition(">")
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{head}><style>\n{style}</style>{rest}\n"


def macro(name: str) -> Callable[..., str]:
    """Returns a macro of `parts.html`."""
    found: Callable[..., str] = getattr(_parts(), name)
    return found


def filled(package: str, name: str, **values: object) -> str:
    """Returns a template that lies in a package, with its values filled in."""
    return _environment().get_template(f"{package}/{name}").render(values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415  # see above

    return Environment(
        autoescape=True,
        loader=FunctionLoader(lambda name: resource(*name.split("/"))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _parts() -> object:
    return _environment().get_template("lrms_sim.report/parts.html").module
