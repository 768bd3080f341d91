"""Splits the words of an `sbatch` command line, as sbatch itself would. Pure.

Every `grms submit` looks here whether its words are for sbatch; what is slow to import stands in `sbatch_text`.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

WITH_VALUE: Final = frozenset(
    (
        *("array", "account", "bb", "bbf", "begin", "comment", "cpu-freq", "cpus-per-task"),
        *("dependency", "deadline", "delay-boot", "chdir", "error", "export", "export-file", "gid"),
        *("gres", "gres-flags", "input", "job-name", "licenses", "clusters", "container"),
        *("distribution", "mail-type", "mail-user", "mcs-label", "ntasks", "ntasks-per-node"),
        *("nodes", "output", "open-mode", "partition", "power", "priority", "profile", "qos"),
        *("core-spec", "signal", "switches", "thread-spec", "time", "time-min", "uid", "wckey"),
        *("wrap", "cluster-constraint", "constraint", "nodefile", "mem", "mincpus", "reservation"),
        *("tmp", "nodelist", "exclude", "mem-per-cpu", "sockets-per-node", "cores-per-socket"),
        *("threads-per-core", "extra-node-info", "ntasks-per-core", "ntasks-per-socket", "hint"),
        *("mem-bind", "cpus-per-gpu", "gpus", "gpu-bind", "gpu-freq", "gpus-per-node"),
        *("gpus-per-socket", "gpus-per-task", "mem-per-gpu", "ntasks-per-gpu", "acctg-freq"),
        *("kill-on-invalid-dep", "wait-all-nodes"),
    )
)
"""Long options of sbatch 22.05 whose value may be the next word (sbatch(1))."""

WITHOUT_VALUE: Final = frozenset(
    (
        *("get-user-env", "hold", "ignore-pbs", "no-kill", "nice", "no-requeue", "overcommit"),
        *("parsable", "propagate", "quiet", "reboot", "requeue", "oversubscribe", "spread-job"),
        *("use-min-nodes", "verbose", "wait", "contiguous", "exclusive", "test-only", "help"),
        *("usage", "version"),
    )
)
"""Those without a value, or only one after `=`."""

SHORT_WITH_VALUE: Final = frozenset("aAbcdDeFiJLMmnNopqStCwxBG")
"""Short options whose value may be the next word; all others have none."""


class SbatchWords(NamedTuple):
    """Split words of an `sbatch` command line; `script` is empty if there is none."""

    options: tuple[str, ...]
    script: str
    arguments: tuple[str, ...]


class UnknownOptionError(ValueError):
    """An option that may have a value in the next word, or not."""


def split_words(words: Sequence[str], own: Mapping[str, bool]) -> tuple[list[str], SbatchWords]:
    """Splits words into those of the caller and those of sbatch.

    `own` are the caller's options, with their dashes, and whether each has a value; they are returned
    first, with their values.

    Raises:
        UnknownOptionError: it is unknown whether an option before the script has a value.
    """
    mine: list[str] = []
    options: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            at -= 1
            break
        name, is_given, _ = word.partition("=")
        target = mine if name in own else options
        target.append(word)
        takes = own[name] if name in own else has_value(word)
        if takes and not (is_given and word.startswith("--")) and at < len(words):
            target.append(words[at])
            at += 1
    script, *arguments = words[at:] or [""]
    return mine, SbatchWords(tuple(options), script, tuple(arguments))


def has_option(options: Sequence[str], name: str) -> bool:
    """Returns whether an option is there by its long name, which may have a value behind `=`."""
    return any(word == f"--{name}" or word.startswith(f"--{name}=") for word in options)


def wrapped(options: Sequence[str]) -> str:
    """Returns the script that sbatch makes of `--wrap`; empty without the option."""
    for number, word in enumerate(options):
        name, is_given, value = word.partition("=")
        if name == "--wrap":
            text = value if is_given else "".join(options[number + 1 : number + 2])
            return f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{text}\n"
    return ""


def without_quiet(options: Sequence[str]) -> list[str]:
    """Returns options of sbatch without `--quiet`, with which it does not say what is in force."""
    found: list[str] = []
    is_value = False
    for word in options:
        if is_value or not word.startswith("-"):
            found.append(word)
            is_value = False
            continue
        is_value = has_value(word)
        if word.startswith("--"):
            found += [] if word == "--quiet" else [word]
            continue
        letters = list(word[1:])
        place = next(
            (at for at, one in enumerate(letters) if one in SHORT_WITH_VALUE), len(letters)
        )
        plain = "".join(one for one in letters[:place] if one != "Q") + "".join(letters[place:])
        found += [f"-{plain}"] if plain else []
    return found


def has_value(word: str) -> bool:
    """Returns whether the next word is the value of an option of sbatch.

    Raises:
        UnknownOptionError: nobody knows.
    """
    if word.startswith("--"):
        name, is_given, _ = word[2:].partition("=")
        if is_given or name in WITHOUT_VALUE:
            return False
        if name not in WITH_VALUE:
            raise UnknownOptionError(f"--{name} is not known here; write it as --{name}=VALUE")
        return True
    for position, letter in enumerate(word[1:], 2):
        if letter in SHORT_WITH_VALUE:
            return position == len(word)
    return False
