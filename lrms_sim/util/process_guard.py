"""Start of a command's process, and its signal handling.

Every command begins here and imports next to nothing before that, since Ctrl-C has to work while
everything else is imported. SIGTERM and SIGHUP end a command as Ctrl-C does: it stops what it has
started and removes what it has begun to write. The process then exits with 128 plus the signal's
number, as shells expect, never with a traceback.

Three phases. While the command's own module is imported nothing has begun: a signal ends the
process at once. While the command runs, a signal raises `KeyboardInterrupt`, but never in the
middle of an import, where it could turn into another error or be lost; it is then raised again a
few milliseconds later. When the command is done, a signal, deferred or new, ends the process at
once.

For some ten milliseconds before the first line here, Ctrl-C is handled by the interpreter, which
dies of it or shows a traceback.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Named like the constant of `typing`, the import of which takes longer than all else here.
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import CodeType, FrameType

EXIT_INTERRUPTED = 130
"""Status of the process after Ctrl-C, as shells have it: 128 plus the signal's number."""

COLLECTED_AFTER = 10_000
"""So many objects are made before Python looks for garbage among them."""

LATER = ("calendar", "ipaddress", "tokenize")
"""What `inspect`, protobuf and `urllib` import in any case, for sources, moments and hosts that few commands meet."""

AGAIN_S = 0.005
"""Seconds after which a signal that came during an import comes again."""

EXTRAS = {
    "aiomqtt": "site",
    "amqtt": "mqtt",
    "cma": "learn",
    "cryptography": "site",
    "google": "site",
    "grpc": "site",
    "grpc_health": "site",
    "grpc_reflection": "site",
    "jwt": "rest",
    "matplotlib": "report",
    "pandas": "frames",
    "polars": "frames",
    "prometheus_client": "site",
    "pyarrow": "frames",
    "starlette": "dashboard",
    "uvicorn": "dashboard",
}
"""The extra that brings each package which not every command needs."""

_EXIT_MISSING = 2
_FRAMES_MAX = 1000
_IMPORTS = ("<frozen importlib", "<frozen zipimport")
_RUNNER = ("Runner.run", "Runner._lazy_init")

_received: list[int] = []


def run(module: str) -> None:
    """Runs `run_command` of a module with this process's arguments, and exits with its status."""
    # Imports make thousands of objects that stay. Python would look for garbage among them a hundred times, and at
    # the end of the process, which frees them anyway, through all of them again.
    import gc  # noqa: PLC0415  # see the module's docstring

    gc.set_threshold(COLLECTED_AFTER)
    # The module `signal` takes ten times as long to import as all that comes before it.
    import _signal  # type: ignore[import-not-found]  # noqa: PLC0415  # nobody has stubs

    # Where a process is to be deaf to a signal, in the background or under nohup, it stays so.
    heard: list[int] = []
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        heard.append(_signal.SIGINT)
        _signal.signal(_signal.SIGINT, _leave)
    import signal  # noqa: PLC0415  # see above

    heard += [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    _listen(heard, _leave)
    _open_what_is_closed()
    from lrms_sim.util.lazy_imports import load_later  # noqa: PLC0415  # see the module's docstring

    load_later(*LATER)
    try:
        __import__(module)
    except ModuleNotFoundError as error:
        sys.exit(_missing(error))
    run_command: Callable[[Sequence[str]], int] = sys.modules[module].run_command
    # asyncio takes Ctrl-C over, to cancel its tasks, where it finds this very function.
    signal.default_int_handler = _interrupt  # type: ignore[assignment]  # it need not always raise
    signal.signal(signal.SIGALRM, _again)
    try:
        try:
            _listen(heard, _interrupt)
            status = run_command(sys.argv[1:])
        finally:
            _listen(heard, _leave)
            _leave_if_put_off()
    except KeyboardInterrupt:
        os.write(2, b"interrupted\n")
        status = EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        status = _missing(error)
    if status == EXIT_INTERRUPTED and _received:
        status = 128 + _received[0]
    gc.freeze()
    sys.exit(status)


def _open_what_is_closed() -> None:
    """Opens /dev/null for standard streams that are closed (`>&-`).

    Otherwise the next file or socket would get that number, and output would be written into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.set_inheritable(number, True)
        mode = "w" if number else "r"
        stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  # to the end
        setattr(sys, name, stream)


def in_unicode(stream: object) -> bool:
    """Returns whether all text can be written to a stream: in UTF-8, or in ASCII, which click turns into that."""
    import codecs  # noqa: PLC0415  # see the module's docstring

    encoding = getattr(stream, "encoding", None) or "utf-8"
    return codecs.lookup(encoding).name in {"utf-8", "ascii"}


def has(name: str) -> bool:
    """Returns whether a package is installed; it is not imported."""
    from importlib.util import find_spec  # noqa: PLC0415  # see `run`

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def require(name: str) -> None:
    """Ends a command that needs a package later, before long work.

    Raises:
        ModuleNotFoundError: it is not installed; `run` names the extra.
    """
    if not has(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _missing(error: ModuleNotFoundError) -> int:
    """Names the extra of a package that is not installed; re-raises other errors."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        raise error
    package = "protobuf" if name == "google" else name
    words = f"Error: this needs {package}; get it with: pip install 'hanse[{EXTRAS[name]}]'\n"
    os.write(2, words.encode())
    return _EXIT_MISSING


def _listen(numbers: Iterable[int], handler: Callable[[int, FrameType | None], None]) -> None:
    import signal  # noqa: PLC0415  # see `run`

    for number in numbers:
        signal.signal(number, handler)


def _leave(number: int, _: FrameType | None) -> None:
    # Nothing has begun, or all is done; an exception could only come out as something else.
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Whoever has taken Ctrl-C over for a while (asyncio; somebody who is moving files) gets the
    # other signals too.
    import signal  # noqa: PLC0415  # see `run`

    if not _received:
        _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and handler is not _interrupt:
        # Not by a call: what asyncio has there does nothing, it reads signals from a descriptor.
        signal.raise_signal(signal.SIGINT)
    elif _importing(frame) or _preparing_asyncio(frame):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        raise KeyboardInterrupt


def _leave_if_put_off() -> None:
    # A signal that came in the last import of a command has nobody left to come again to; the
    # interpreter, at its end, would be killed by the alarm instead.
    import signal  # noqa: PLC0415  # see `run`

    signal.signal(signal.SIGALRM, _leave_late)
    remaining_s, _ = signal.setitimer(signal.ITIMER_REAL, 0.0)
    if remaining_s:
        _leave_late(signal.SIGALRM, None)


def _leave_late(_: int, frame: FrameType | None) -> None:
    _leave(_received[0], frame)


def _again(_: int, frame: FrameType | None) -> None:
    _interrupt(_received[0], frame)


def _importing(frame: FrameType | None) -> bool:
    """Returns whether a module is being imported in a frame."""
    return any(code.co_filename.startswith(_IMPORTS) for code in _codes(frame))


def _preparing_asyncio(frame: FrameType | None) -> bool:
    """Returns whether asyncio is about to take over Ctrl-C, or has just released it.

    There an interrupt would leave half an event loop, which complains on disposal, and a task that
    is never cancelled.
    """
    for code in _codes(frame):
        if code.co_name == "run_until_complete":
            return False
        if code.co_qualname in _RUNNER and code.co_filename.endswith("asyncio/runners.py"):
            return True
    return False


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    for _ in range(_FRAMES_MAX):
        if frame is None:
            return
        yield frame.f_code
        frame = frame.f_back
