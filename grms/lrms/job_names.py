"""Names of jobs at a batch system: the user's word followed by a unique tag.

The user's word is for people (`squeue`, `qstat`) alone. All look-ups use the tag: it is unique for all time,
appears in the queue, the completion log and accounting, and guards a cancellation.
"""

import re
from typing import Final

WORD_MAX: Final = 64
"""Most characters shown of a user's word."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]")


def shown_name(word: str, tag: str, mark: str) -> str:
    """Returns a job's name for the batch system.

    Characters of the user's word that could confuse a queue or log become `_`; `tag` is unique for all time,
    `mark` a separator that words do not contain.
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
    """Returns the unique tag in a name at the batch system; empty for a name of another site."""
    if name.startswith(prefix):
        return name
    tag = name.partition(mark)[2]
    return tag if tag.startswith(prefix) else ""
