"""The description of the HTTP interface (OpenAPI 3), made of what is answered and taken. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from grms.site.rest.submission import OPTIONS
from lrms_sim.util.version import __version__

TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
EITHER: Final = {"oneOf": [{"type": "string"}, {"type": "integer"}]}

JOB_NUMBERS: Final = (
    *("array_job_id", "cpus", "end_time", "exit_code", "group_id", "job_id", "node_count"),
    *("start_time", "submit_time", "tasks", "time_limit", "user_id"),
)
JOB_TEXTS: Final = (
    *("account", "array_task_string", "cluster", "dependency", "features", "group_name"),
    *("job_state", "licenses", "name", "nodes", "partition", "qos", "state_description"),
    *("state_reason", "user_name"),
)
"""What is told of a job; `array_task_id` is a number, or null."""

_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "_integer": NUMBER,
    "_count": {**NUMBER, "minimum": 1},
    "_minutes": NUMBER,
    "_text": TEXT,
    "_number_or_text": EITHER,
    "_flag": FLAG,
    "_nodes": {"oneOf": [*EITHER["oneOf"], {"type": "array", "items": NUMBER, "maxItems": 2}]},
}
_OTHERS: Final[Mapping[str, Any]] = {
    "argv": {"type": "array", "items": TEXT},
    "array": TEXT,
    "current_working_directory": TEXT,
    "dependency": TEXT,
    "environment": {"type": "object", "additionalProperties": EITHER, "minProperties": 1},
    "name": TEXT,
    "open_mode": {"type": "string", "enum": ["append", "truncate"]},
    "requeue": FLAG,
    "standard_error": TEXT,
    "standard_input": TEXT,
    "standard_output": TEXT,
}


def openapi_document(versions: Sequence[str]) -> dict[str, Any]:
    """Returns the description of these versions."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for version in versions:
        paths |= _paths(version)
        schemas |= {f"{version}_{name}": schema for name, schema in _schemas(version).items()}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Hanse", "description": "A site's jobs", "version": __version__},
        "security": [{"bearer": []}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "token": {"type": "apiKey", "in": "header", "name": "X-SLURM-USER-TOKEN"},
            },
        },
    }


def _paths(version: str) -> dict[str, Any]:
    at, job_id = f"/slurm/{version}", {"name": "job_id", "in": "path", "required": True}
    key = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": TEXT}
    body = {"required": True, "content": _json(version, "job_submission")}
    of_job = {**job_id, "schema": TEXT}

    def operation(name: str, answer: str, **more: Any) -> dict[str, Any]:
        said = {"200": _answer(version, answer, "what was asked for")}
        said["default"] = _answer(version, "error", "an error")
        return {"operationId": f"{name}_{version}", "responses": said, **more}

    return {
        f"{at}/ping": {"get": operation("ping", "pings")},
        f"{at}/jobs": {"get": operation("get_jobs", "jobs")},
        f"{at}/job/submit": {
            "post": operation("submit_job", "submitted", requestBody=body, parameters=[key])
        },
        f"{at}/job/{{job_id}}": {
            "get": operation("get_job", "jobs", parameters=[of_job]),
            "delete": operation("cancel_job", "done", parameters=[of_job]),
        },
    }


def _json(version: str, name: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{version}_{name}"}
    return {"application/json": {"schema": schema}}


def _answer(version: str, name: str, text: str) -> dict[str, Any]:
    return {"description": text, "content": _json(version, name)}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


def _schemas(version: str) -> dict[str, Any]:
    error = _object(error=TEXT, error_number=NUMBER, description=TEXT, source=TEXT)
    common = {"meta": {"type": "object"}, "errors": {"type": "array", "items": error}}
    job = _object(
        **dict.fromkeys(JOB_NUMBERS, NUMBER),
        **dict.fromkeys(JOB_TEXTS, TEXT),
        array_task_id={**NUMBER, "nullable": True},
    )
    jobs = {"type": "array", "items": {"$ref": f"#/components/schemas/{version}_job"}}
    ping = _object(hostname=TEXT, ping=TEXT, mode=TEXT, status=NUMBER)
    options = {name: _KINDS[read.__name__] for name, (_, read) in OPTIONS.items()}
    properties = _object("environment", "time_limit", **options, **_OTHERS)
    submission = _object("script", "job", script=TEXT, job=properties)
    return {
        "job": job,
        "jobs": _object("meta", "errors", "jobs", **common, jobs=jobs),
        "pings": _object(
            "meta", "errors", "pings", **common, pings={"type": "array", "items": ping}
        ),
        "submitted": _object(
            *("meta", "errors", "job_id"),
            **common,
            job_id=NUMBER,
            step_id=TEXT,
            job_submit_user_msg=TEXT,
        ),
        "done": _object("meta", "errors", **common),
        "error": _object("meta", "errors", **common, jobs=jobs),
        "job_submission": submission,
    }
