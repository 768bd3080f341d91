"""Options of Slurm's commands, errors in Slurm's form, and what is left to Slurm's own commands."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from hanse_slurm.programs import real
from lrms_sim.util.errors import HanseError

LEFT: Final = frozenset(("--help", "--usage", "--version", "-V"))
"""Options by which every command says something of itself; Slurm's own says it."""


_LEFT: Final = "HANSE_SLURM_LEFT"
# The program that has started Slurm's own in the place of a process, and the number of that.


class UsageError(HanseError):
    """What was typed is not understood; the status is Slurm's."""

    exit_status = 1


def parse(
    program: str, words: Sequence[str], short: str, long: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns the options with their values, and the other words; options may come between these.

    Args:
        program: name of the command.
        words: as typed.
        short: letters, with `:` behind those that have a value.
        long: names, with `=` behind those that have one.

    Raises:
        UsageError: an option is not known.
    """
    if LEFT & set(words):
        leave(program, words)
    import getopt  # noqa: PLC0415  # slow to import, and not for sbatch

    try:
        return getopt.gnu_getopt(list(words), short, list(long))
    except getopt.GetoptError as error:
        said = str(error)
        if "argument" in said:
            raise UsageError(f"{said[0].lower()}{said[1:]}") from error
        raise unknown(
            program, f"option {'-' if len(error.opt) == 1 else '--'}{error.opt}"
        ) from error


def with_variables(
    program: str, given: Sequence[tuple[str, str]], variables: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Returns options with those that variables of the environment say.

    As with Slurm, a variable counts where none of its options was typed, nor said by one before it.

    Args:
        program: name of the command.
        given: as typed.
        variables: the options of each, the one that it stands for first; none where sites do not know it.

    Raises:
        UsageError: one is set that sites do not know.
    """
    typed = {option for option, _ in given}
    found = list(given)
    for name, options in variables.items():
        value = os.environ.get(name, "")
        if not value or typed.intersection(options):
            continue
        if not options:
            raise unknown(program, f"{name}={value}")
        found.append((options[0], value))
        typed.add(options[0])
    return found


def unknown(program: str, what: str) -> UsageError:
    """Returns the error for what Slurm may know, and these commands do not."""
    own = real(program)
    hint = f"; Slurm's own command is {own}" if own else ""
    return UsageError(f"{what} is not known for the jobs of a site{hint}")


def leave(program: str, words: Sequence[str]) -> NoReturn:
    """Starts Slurm's own command in the place of this process.

    Raises:
        UsageError: there is none.
    """
    path = real(program)
    if not path:
        raise UsageError(f"this is for Slurm's own {program}, and there is none along PATH")
    name, _, number = os.environ.get(_LEFT, "").partition(":")
    if name == program and number in {str(os.getpid()), str(os.getppid())}:
        raise UsageError(f"{path} is to be Slurm's own {program}, and starts this one again")
    os.environ[_LEFT] = f"{program}:{os.getpid()}"
    sys.stdout.flush()
    os.execv(path, [program, *words])  # noqa: S606  # what its user has typed


def run(program: str, command: Callable[[Sequence[str]], int], words: Sequence[str]) -> int:
    """Runs a command and returns its status; errors are printed as Slurm does, with status 1 or their own."""
    try:
        status = command(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UsageError as error:
        return tell(program, str(error), error.exit_status)
    except HanseError as error:
        # 2 is what Hanse's own commands end with; Slurm's end with 1.
        return tell(program, str(error), 1 if error.exit_status == 2 else error.exit_status)
    except OSError as error:
        return tell(program, str(error), 1)
    return status


def tell(program: str, text: str, status: int = 1) -> int:
    """Prints an error, a line for each of its lines, and returns the status."""
    from lrms_sim.util.messages import printable  # noqa: PLC0415  # few commands have an error

    for line in text.splitlines():
        print(f"{program}: error: {printable(line)}", file=sys.stderr)
    return status
