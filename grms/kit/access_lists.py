"""Lets one account look into a folder that is otherwise its owner's alone: a POSIX access list, as `setfacl` writes it.

No right of root is needed, as the folder's owner may do that. New files in the folder can be read by the account too,
as far as whoever makes them lets a group read them; nothing can be written.
"""

import os
import struct
from pathlib import Path
from typing import Final

_VERSION: Final = 2
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ALL, _LOOK, _NOTHING = 7, 5, 0
_NOBODY: Final = 0xFFFFFFFF
_NAMES: Final = ("system.posix_acl_access", "system.posix_acl_default")


def let_in(folder: Path, uid: int) -> None:
    """Lets an account enter a folder and read what will be in it.

    Args:
        folder: this process's own, with nothing in it yet.
        uid: number of the account.

    Raises:
        OSError: the file system has no such lists, or none that can be written here.
    """
    entries = (
        (_OWNER, _ALL, _NOBODY),
        (_USER, _LOOK, uid),
        (_GROUP, _NOTHING, _NOBODY),
        (_MASK, _LOOK, _NOBODY),
        (_OTHER, _NOTHING, _NOBODY),
    )
    value = struct.pack("<I", _VERSION) + b"".join(struct.pack("<HHI", *each) for each in entries)
    for name in _NAMES:
        os.setxattr(folder, name, value, follow_symlinks=False)
