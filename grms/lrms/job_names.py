"""Names of jobs at a batch system: what names a job for ever, behind the word that its user has for it.

The latter is for people (`squeue`, `qstat`) alone. Everything that looks a job up goes by the former: it is
unique for all time, stands in the table, in the completion log and in accounting, and guards a cancellation.
"""

import re
from typing import Final

WORD_MAX: Final = 64
"""So many characters of a user's word are shown."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]")


def shown_name(word: str, tag: str, mark: str) -> str:
    """Returns the name that a batch system is given.

    Args:
        word: the user's; may be empty. Whatever a table or a log could be read wrongly by becomes `_`.
        tag: what names the job for ever.
        mark: a character between the two, which no word has.
    """
    plain = _OTHER.sub("_", word)[:WORD_MAX]
    if not plain:
        return tag
    if not plain[0].isalpha() or plain == tag.partition(mark)[0]:
        plain = (
            f"_{plain}"  # nothing that looks like an option, a number, or the beginning of a tag
        )
    return f"{plain}{mark}{tag}"


def tag_of(name: str, prefix: str, mark: str) -> str:
    """Returns what names a job for ever; empty of a name that is not of this site.

    Args:
        name: at the batch system.
        prefix: of the tags of this site.
        mark: as for `shown_name`.
    """
    if name.startswith(prefix):
        return name
    tag = name.partition(mark)[2]
    return tag if tag.startswith(prefix) else ""
