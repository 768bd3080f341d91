"""The processes of the four commands, and signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.interrupts import COMMANDS, Try, attempt
from lrms_sim.util import process_guard
from tests.examples import THOROUGH
from tests.programs import run_program

COMMAND = "from scenarios.command import main; main()"
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")

HEARING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""Processes are born deaf to Ctrl-C in the background, and to a closed terminal under nohup."""

WORKS = """
import asyncio
import scenarios.cli.main

async def work():
    try:
        print("works", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        print("ended in order", flush=True)

def run_command(arguments):
    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return 130

scenarios.cli.main.run_command = run_command
"""


def signalled(program: str, number: int, path: Path | None = None) -> tuple[int, str, str]:
    """Sends a program a signal when it has written a line; returns status, output and errors."""
    paths = [str(path)] if path else []
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, sys.path)])},
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        out, error = process.communicate(timeout=300)
    return process.returncode, first + out, error


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("package", PACKAGES)
def test_a_signal_among_the_imports_shows_no_traceback(
    tmp_path: Path, package: str, number: int, status: int
) -> None:
    """One word, at once, and the status that shells expect."""
    slow = "import time\nprint('imports', flush=True)\ntime.sleep(60)\n"
    (tmp_path / "click.py").write_text(slow)
    done = signalled(f"{HEARING}from {package}.command import main; main()", number, tmp_path)
    assert done == (status, "imports\n", "interrupted\n")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["term", "hup"]
)
@pytest.mark.parametrize("heard", ["default_int_handler", "SIG_IGN"])
def test_a_command_is_ended_as_by_ctrl_c(heard: str, number: int, status: int) -> None:
    """What it has begun it ends in order, in the background as well."""
    begin = f"{HEARING}signal.signal(signal.SIGINT, signal.{heard})\n"
    done = signalled(begin + WORKS + COMMAND, number)
    assert done == (status, "works\nended in order\n", "")


def test_what_a_process_is_deaf_to_stays_so() -> None:
    """Under nohup a command goes on when the terminal is closed."""
    begin = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    program = begin + WORKS.replace("sleep(60)", "sleep(0.2)") + COMMAND
    assert signalled(program, signal.SIGHUP) == (0, "works\nended in order\n", "")


LAZY = """
import sys
import scenarios.cli.main

def run_command(arguments):
    try:
        import slow_to_import
        import time
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted in", "the middle" if "slow_to_import" not in sys.modules else "order")
        return 130

scenarios.cli.main.run_command = run_command
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_import_within_a_command_is_not_broken_off(
    tmp_path: Path, number: int, status: int
) -> None:
    """Libraries turn the interruption of their import into other errors, or lose it."""
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nprint('imports', flush=True)\n"
        "try:\n    time.sleep(0.4)\nexcept BaseException:\n    pass  # and so it is lost\n"
    )
    done = signalled(HEARING + LAZY + COMMAND, number, tmp_path)
    assert done == (status, "imports\ninterrupted in order\n", "")


WAITS = """
import time
from lrms_sim.util import process_guard
print("imports", flush=True)
while not process_guard._received:
    time.sleep(0.001)
"""

LAST = """
import sys, time
import scenarios.cli.main
from lrms_sim.util import process_guard

def run_command(arguments):
    import slow_to_import
    return 0

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # the interpreter has no handlers any more

sys.last = Last()
process_guard.AGAIN_S = 0.3
scenarios.cli.main.run_command = run_command
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_last_import_of_a_command_is_not_forgotten(
    tmp_path: Path, number: int, status: int
) -> None:
    """The alarm that was to bring it again ended the interpreter, with a status of its own."""
    (tmp_path / "slow_to_import.py").write_text(WAITS)
    done = signalled(HEARING + LAST + COMMAND, number, tmp_path)
    assert done == (status, "imports\n", "interrupted\n")


DAEMON = """
import asyncio
import scenarios.cli.main
from grms.daemon.process import signals
from lrms_sim.util import process_guard

async def serve():
    stopping = asyncio.Event()
    async with signals(stopping.set):
        print("serves", flush=True)
        await stopping.wait()
        print("ended in order", flush=True)

def run_command(arguments):
    import slow_to_import
    asyncio.run(serve())
    return 0

process_guard.AGAIN_S = 0.3
scenarios.cli.main.run_command = run_command
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_daemon_hears_a_signal_that_came_among_its_imports(tmp_path: Path, number: int) -> None:
    """It comes again when asyncio has taken signals over, and was lost: the daemon served on."""
    (tmp_path / "slow_to_import.py").write_text(WAITS)
    done = signalled(HEARING + DAEMON + COMMAND, number, tmp_path)
    assert done == (0, "imports\nserves\nended in order\n", "")


PREPARES = """
import asyncio
import scenarios.cli.main
from lrms_sim.util import process_guard

class Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        print("prepares", flush=True)
        while not process_guard._received:
            pass
        super().__init__()
        print("prepared", flush=True)

def run_command(arguments):
    asyncio.DefaultEventLoopPolicy._loop_factory = Loop
    asyncio.run(asyncio.sleep(60))

scenarios.cli.main.run_command = run_command
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_half_an_event_loop_is_not_thrown_away(number: int, status: int) -> None:
    """It complains of what it has not, and of a task that never ran."""
    done = signalled(HEARING + PREPARES + COMMAND, number)
    assert done == (status, "prepares\nprepared\n", "interrupted\n")


LATE = """
import threading, time
import scenarios.cli.main
from lrms_sim.util import process_guard

def linger():
    while signal.getsignal(signal.SIGINT) is not process_guard._leave:
        time.sleep(0.001)
    print("done", flush=True)
    time.sleep(60)

scenarios.cli.main.run_command = lambda _: threading.Timer(0.0, linger).start() or 0
"""


def test_a_signal_when_all_is_done_shows_no_traceback() -> None:
    """The interpreter waits for threads at its end; who interrupts that sees one word."""
    status, out, error = signalled(HEARING + LATE + COMMAND, signal.SIGINT)
    assert (status, out, error) == (130, "done\n", "interrupted\n")


def test_garbage_is_looked_for_seldom_and_not_at_the_end() -> None:
    """What stays is most of what a command imports; looking through it costs more than a short command does."""
    program = """
import atexit, gc
import scenarios.cli.main

def run_command(arguments):
    print("works", gc.isenabled(), gc.get_threshold()[0] > 5_000, gc.get_freeze_count(), flush=True)
    atexit.register(lambda: print(gc.get_freeze_count() > 1_000))

scenarios.cli.main.run_command = run_command
"""
    done = run_program([sys.executable, "-c", program + COMMAND], check=True)
    assert done.stdout == "works True True 0\nTrue\n"


def test_next_to_nothing_is_imported_before_the_guard() -> None:
    """What a command needs before it hears Ctrl-C is of the house alone."""
    commands = ", ".join(f"{package}.command" for package in PACKAGES)
    program = (
        "import sys; before = set(sys.modules)\n"
        f"import {commands}\nprint(*set(sys.modules) - before)"
    )
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)  # noqa: S603  # this very interpreter
    assert {name for name in shown.split() if name.partition(".")[0] not in PACKAGES} == set()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_interrupted_at_random_a_command_ends_as_it_should(command: str, tmp_path: Path) -> None:
    """A few tries of what the benchmark does by the hundred."""
    for delay_s in (0.15, 0.4) if THOROUGH else (0.15,):
        one = attempt(command, delay_s, tmp_path)
        assert one.verdict != "WRONG", one


def test_a_traceback_of_a_command_is_told_from_one_of_the_interpreters_start() -> None:
    """A frame of the house beyond the way to the guard means that the guard did not hold."""
    head = "Traceback (most recent call last):\n"
    start = (
        '  File "<frozen site>", line 1, in <module>\n  File "/v/bin/grms", line 3, in <module>\n'
    )
    end = "KeyboardInterrupt\n"
    assert Try("grms", 0.0, -2, head + start + end).verdict == "interpreter"
    early = "Fatal Python error: init_import_site: Failed to import the site module\n"
    assert Try("grms", 0.0, 1, early + start + end).verdict == "interpreter"
    path = '  File "<string>", line 1, in <module>\n'
    assert Try("grms", 0.0, 1, early + path + end).verdict == "interpreter"
    house = '  File "/h/grms/cli/main.py", line 3, in <module>\n'
    assert Try("grms", 0.0, 1, early + start + house + end).verdict == "WRONG"
    assert Try("grms", 0.0, -2, head + start + house + end).verdict == "WRONG"
    assert Try("grms", 0.0, 130, head + start + "interrupted\n").verdict == "WRONG"
    assert Try("grms", 0.0, 130, "interrupted\n").verdict == "as it should"
    assert Try("grms", 0.0, 2, "Error: something\n").verdict == "WRONG"


@pytest.mark.parametrize("command", PACKAGES)
def test_the_way_to_the_guard_is_short(command: str) -> None:
    """Nothing is imported before it but modules of the house, and what takes no time."""
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); before = set(sys.modules)\n"
        f"import {command}.command; print(*sorted(set(sys.modules) - before))"
    )
    run = [sys.executable, "-I", "-S", "-c", program]
    done = run_program(run, check=True)
    found = done.stdout.split()
    rest = [name for name in found if name.split(".")[0] not in {command, "lrms_sim"}]
    assert rest in ([], ["__future__"])
    assert len(found) < 10


def test_a_missing_package_is_found_before_long_work(capfd: pytest.CaptureFixture[str]) -> None:
    """One of an extra is named with what brings it; a module of our own that lacks is an error."""
    assert process_guard.has("click")
    assert not process_guard.has("no_such_package")
    assert not process_guard.has("no_such_package.part")
    process_guard.require("click")
    with pytest.raises(ModuleNotFoundError) as missing:
        process_guard.require("no_such_package")
    assert missing.value.name == "no_such_package"
    with pytest.raises(ModuleNotFoundError):
        process_guard._missing(missing.value)
    known = ModuleNotFoundError("No module named 'grpc.aio'", name="grpc.aio")
    assert process_guard._missing(known) == 2
    assert capfd.readouterr().err == (
        "Error: this needs grpc; get it with: pip install 'hanse[site]'\n"
    )


CLOSED = """
import os
import sys
sys.modules["scenarios.cli.main"] = sys.modules["__main__"]

def run_command(arguments):
    print("to nobody")
    sys.stdin.read()
    other = os.open(os.devnull, os.O_RDONLY)
    open("seen", "w").write(f"{other > 2} {all(map(os.get_inheritable, (0, 1, 2)))}")
    return 0

"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_process_without_standard_output_writes_into_nothing_else(
    closed: str, tmp_path: Path
) -> None:
    """What is closed at the start is /dev/null, for the processes it starts too; no file gets its number."""
    script = f'exec "$0" -c "$1" {closed}'
    done = run_program(
        ["/bin/sh", "-c", script, sys.executable, CLOSED + COMMAND],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "seen").read_text() == "True True"
