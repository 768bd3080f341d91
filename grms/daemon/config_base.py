"""Common parts of configuration models: strictness, paths, bounds."""

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

WRONG: Final = "hanse"
"""Type of an error whose text is shown unchanged."""

SOCKET_PATH_BYTES_MAX: Final = 100
"""Longest path of a Unix socket; the kernel allows 107 bytes."""


class Model(BaseModel):
    """A table of a configuration file.

    It is strict: TOML has types, so "96" for 96 is a mistake.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def wrong(text: str) -> PydanticCustomError:
    """Returns the error of an invalid value; `text`, shown unchanged, says what is wrong and what is allowed."""
    return PydanticCustomError(WRONG, "{text}", {"text": text})


def absolute(value: str, info: ValidationInfo) -> str:
    """Returns the path of a file; a relative one is relative to `folder` of the context.

    Raises:
        PydanticCustomError: it cannot be a file's path.
    """
    if not value or "\0" in value:
        raise wrong("must be the path of a file")
    folder = (info.context or {}).get("folder", Path())
    return str(Path(folder, value).absolute())


def _socket(value: str, info: ValidationInfo) -> str:
    path = absolute(value, info)
    if len(path.encode()) > SOCKET_PATH_BYTES_MAX:
        text = f"{path!r} is longer than {SOCKET_PATH_BYTES_MAX} bytes, the most a socket can have"
        raise wrong(text)
    return path


FilePath = Annotated[str, AfterValidator(absolute)]
SocketPath = Annotated[str, AfterValidator(_socket)]
Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]


class ClockConfig(Model):
    """Which time it is.

    Attributes:
        kind: `wall`, real time; `scaled`, faster; `virtual`, told by the coordinator of a replay.
        speed: seconds of a scaled clock for a real one.
        origin: when a scaled clock shows 0, seconds since 1970; all sites of one federation need
            the same.
    """

    kind: Literal["wall", "scaled", "virtual"] = "wall"
    speed: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 1.0
    origin: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if (self.kind == "scaled") != (self.origin is not None):
            raise wrong("origin is needed with kind = 'scaled', and goes with no other")
        if self.kind != "scaled" and self.speed != 1.0:
            raise wrong("speed goes with kind = 'scaled' alone")
        return self


class LoggingConfig(Model):
    """The log on standard error.

    Attributes:
        format: `console` for people, `json` for programs.
        level: least severity written.
    """

    format: Literal["console", "json"] = "console"
    level: Literal["debug", "info", "warning", "error"] = "info"


class TlsConfig(Model):
    """The files of mutual TLS, as written by `grms pki issue`.

    Attributes:
        authority: certificate of the authority that all have.
        certificate: of this daemon.
        key: of this daemon, readable by it alone.
    """

    authority: FilePath
    certificate: FilePath
    key: FilePath
