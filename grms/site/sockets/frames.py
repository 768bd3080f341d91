"""Messages on a stream of bytes, each preceded by its length: four bytes, the highest first."""

from typing import Final

HEAD_BYTES: Final = 4
"""What tells the length of a message."""


class FrameTooLongError(Exception):
    """A message is longer than is taken; the text says how long, in bytes."""


def framed(message: bytes) -> bytes:
    """Returns a message with its length before it."""
    return len(message).to_bytes(HEAD_BYTES, "big") + message


class Frames:
    """Takes a stream apart.

    Args:
        bytes_max: longest message.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the messages that are whole with what has come, in order.

        Args:
            data: what has come.

        Raises:
            FrameTooLongError: a message is announced that is longer than is taken. What came before it
                is lost as well: the stream is of no further use.
        """
        if self._rest:
            data = self._rest + data
        found, begin, end = [], HEAD_BYTES, len(data)
        while begin <= end:
            length = int.from_bytes(data[begin - HEAD_BYTES : begin], "big")
            if length > self._bytes_max:
                raise FrameTooLongError(
                    f"a message of {length} bytes; the longest has {self._bytes_max}"
                )
            if begin + length > end:
                break
            found.append(data[begin : begin + length])
            begin += length + HEAD_BYTES
        self._rest = data[begin - HEAD_BYTES :]
        return found
