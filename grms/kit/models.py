"""What the models of configuration files have in common: strictness, paths, bounds."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

WRONG: Final = "hanse"
"""Type of an error whose text is finished: it is shown as it is."""

SOCKET_PATH_BYTES_MAX: Final = 100
"""Longest path of a Unix socket: the kernel takes 107 bytes."""


class Model(BaseModel):
    """A table of a configuration file.

    It is strict: TOML has types, so "96" for 96 is a mistake and not a spelling.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def wrong(text: str) -> PydanticCustomError:
    """Returns the error of a value that cannot be used.

    Args:
        text: what is wrong with it and what is allowed; shown as it is.
    """
    return PydanticCustomError(WRONG, "{text}", {"text": text})


def absolute(value: str, info: ValidationInfo) -> str:
    """Returns the path of a file; a relative one is relative to `folder` of the context.

    Raises:
        PydanticCustomError: it is the path of no file.
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


class LoggingConfig(Model):
    """The log on standard error.

    Attributes:
        format: `console` for people, `json` for programs.
        level: what is written at least.
    """

    format: Literal["console", "json"] = "console"
    level: Literal["debug", "info", "warning", "error"] = "info"


class TlsConfig(Model):
    """The files of mutual TLS, as `grms pki issue` writes them.

    Attributes:
        authority: certificate of the authority that all have.
        certificate: of this daemon.
        key: of this daemon, readable by it alone.
    """

    authority: FilePath
    certificate: FilePath
    key: FilePath
