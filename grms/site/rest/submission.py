"""What slurmrestd is told of a job, as a request to the site. Pure.

Properties become options of sbatch, which are read as those of a script are. What no site can do is refused by name.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from grms.client.submission import submit_request
from grms.lrms.home_run import HomeRun
from grms.lrms.slurm.sbatch_text import AT_HOME
from grms.lrms.slurm.slurm_request import UnsaidError, read_options
from grms.util.job_arrays import ArraySpec
from grms.v1 import job_pb2
from lrms_sim.workload.requests import RequestError

ENVIRONMENT_MAX: Final = 10_000
"""Most variables of one job."""


class PropertyError(ValueError):
    """A property of a job is wrong, missing, or none that a site knows; `field` is its name."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("must be a text")
    value.encode()  # JSON can escape what is no character
    return value


def _integer(value: Any) -> str:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return str(value)


def _count(value: Any) -> str:
    found = _integer(value)
    if not int(found):
        raise ValueError("must be a whole number, 1 or more")
    return found


def _number_or_text(value: Any) -> str:
    return _text(value) if isinstance(value, str) else _integer(value)


def _nodes(value: Any) -> str:
    if isinstance(value, list):
        if not 1 <= len(value) <= 2:
            raise ValueError("must be a number of nodes, or the least and the greatest")
        return "-".join(map(_count, value))
    return _text(value) if isinstance(value, str) else _count(value)


def _minutes(value: Any) -> str:
    hours, minutes = divmod(int(_integer(value)), 60)
    return f"{hours // 24}-{hours % 24:02}:{minutes:02}:00"


def _flag(value: Any) -> str:
    if value is not True and value != "true":
        raise ValueError("only true is known here; leave it out otherwise")
    return "set"


Read = Callable[[Any], str]

OPTIONS: Final[Mapping[str, tuple[str, Read]]] = {
    "account": ("account", _text),
    "constraints": ("constraint", _text),
    "cpus_per_gpu": ("cpus-per-gpu", _integer),
    "cpus_per_task": ("cpus-per-task", _count),
    "exclusive": ("exclusive", _flag),
    "gpus": ("gpus", _number_or_text),
    "gpus_per_node": ("gpus-per-node", _number_or_text),
    "gpus_per_task": ("gpus-per-task", _number_or_text),
    "gres": ("gres", _text),
    "licenses": ("licenses", _text),
    "memory_per_cpu": ("mem-per-cpu", _number_or_text),
    "memory_per_gpu": ("mem-per-gpu", _number_or_text),
    "memory_per_node": ("mem", _number_or_text),
    "nodes": ("nodes", _nodes),
    "partition": ("partition", _text),
    "qos": ("qos", _text),
    "signal": ("signal", _text),
    "tasks": ("ntasks", _count),
    "tasks_per_node": ("ntasks-per-node", _integer),
    "time_limit": ("time", _minutes),
}
"""Properties that are options of sbatch: the option, and how the value is read."""

OTHERS: Final = frozenset(
    (
        *("argv", "array", "current_working_directory", "dependency", "environment", "name"),
        *("open_mode", "requeue", "standard_error", "standard_input", "standard_output"),
    )
)
"""Properties of another kind."""


def read_submission(document: Any, key: str | None) -> job_pb2.SubmitRequest:
    """Returns the request that a document with `script` and `job` is.

    `key` is the idempotency key; `None` for one that nobody has.

    Raises:
        PropertyError: no site could take such a job.
    """
    if not isinstance(document, dict):
        raise PropertyError("body", "must be an object with script and job")
    if more := sorted(document.keys() - {"script", "job"}):
        text = "heterogeneous jobs are not known here" if more[0] == "jobs" else "is not known here"
        raise PropertyError(more[0], text)
    properties = document.get("job")
    if not isinstance(properties, dict):
        raise PropertyError("job", "must be an object with the job's properties")
    script = document.get("script")
    if not isinstance(script, str) or not script.startswith("#!"):
        raise PropertyError("script", "must be a text that begins with #!")
    if "\0" in script or script.partition("\n")[0].endswith("\r"):
        # As sbatch refuses both; the job would only fail later.
        raise PropertyError("script", "has a NUL, or lines that end as those of DOS do")
    if unknown := sorted(properties.keys() - OPTIONS.keys() - OTHERS):
        raise PropertyError(f"job.{unknown[0]}", "a site can do nothing about it; leave it out")
    if "time_limit" not in properties:
        raise PropertyError("job.time_limit", "is missing: in minutes")
    return _request(script, properties, key)


def _request(script: str, properties: Mapping[str, Any], key: str | None) -> job_pb2.SubmitRequest:
    environment = _environment(properties.get("environment"))
    options = {
        option: _taken(name, properties[name], read)
        for name, (option, read) in OPTIONS.items()
        if name in properties
    }
    if "requeue" in properties:
        if not isinstance(properties["requeue"], bool):
            raise PropertyError("job.requeue", "must be true or false")
        options["requeue" if properties["requeue"] else "no-requeue"] = "set"
    texts = {name: _optional(properties, name) for name in _TEXTS}
    if texts["standard_input"] not in {"", "/dev/null"}:
        raise PropertyError("job.standard_input", "a partner does not have the file")
    folder = texts["current_working_directory"]
    if folder and not folder.startswith("/"):
        raise PropertyError("job.current_working_directory", "must begin with /")
    arguments = _arguments(properties.get("argv", []))
    pairs = tuple(f"{name}={value}".encode() for name, value in environment.items())
    try:
        needs = read_options(options)
        if texts["array"]:
            ArraySpec.parse(texts["array"])
        return submit_request(
            needs=needs,
            script=script,
            arguments=arguments,
            environment=environment,
            name=texts["name"],
            key=key,
            home=HomeRun(folder, pairs, _words_at_home(options, texts)) if folder else None,
            array=texts["array"],
            dependency=texts["dependency"],
            output=texts["standard_output"],
            error=texts["standard_error"],
            open_mode=texts["open_mode"],
        )
    except UnsaidError as error:
        name = _PROPERTIES.get(error.option, error.option)
        raise PropertyError(f"job.{name}", error.reason) from error
    except (RequestError, ValueError) as error:
        raise PropertyError("job", str(error)) from error


def _words_at_home(options: Mapping[str, str], texts: Mapping[str, str]) -> tuple[str, ...]:
    # What sbatch is told of a job that stays, as where it is handed in by sbatch.
    streams = {option: texts[name] for option, name in _STREAMS.items() if texts[name]}
    found = {**options, **streams}
    return tuple(
        f"--{name}" if value == "set" else f"--{name}={value}"
        for name, value in sorted(found.items())
        if name in AT_HOME
    )


_STREAMS: Final = {
    "output": "standard_output",
    "error": "standard_error",
    "open-mode": "open_mode",
}
_PROPERTIES: Final = {option: name for name, (option, _) in OPTIONS.items()}
_TEXTS: Final = (
    *("array", "current_working_directory", "dependency", "name", "open_mode"),
    *("standard_error", "standard_input", "standard_output"),
)


def _taken(name: str, value: Any, read: Read) -> str:
    try:
        return read(value)
    except ValueError as error:
        raise PropertyError(f"job.{name}", str(error)) from error


def _optional(properties: Mapping[str, Any], name: str) -> str:
    return _taken(name, properties[name], _text) if name in properties else ""


def _arguments(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise PropertyError("job.argv", "must be a list of texts")
    return [_taken("argv", each, _text) for each in value]


def _environment(value: Any) -> dict[str, str]:
    # As in slurmrestd it has to be there: a job does not begin with the variables of a daemon.
    if not isinstance(value, dict) or not value:
        raise PropertyError("job.environment", "is missing: an object with at least one variable")
    if len(value) > ENVIRONMENT_MAX:
        raise PropertyError("job.environment", f"at most {ENVIRONMENT_MAX} variables")
    found = {}
    for name, content in value.items():
        if not name or "=" in name:
            raise PropertyError("job.environment", f"{name[:40]!r} is no name of a variable")
        _taken("environment", name, _text)
        found[name] = _taken("environment", content, _number_or_text)
    return found
