"""Frames of HTTP/2 and heads of gRPC calls, made by hand: for clients that no library would be."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
END_STREAM, END_HEADERS = 0x1, 0x4


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """Returns a frame (RFC 9113, section 4.1)."""
    return len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + body


def data(stream: int, body: bytes, *, ends: bool = False) -> bytes:
    """Returns a frame with data of a call."""
    return frame(0, END_STREAM if ends else 0, stream, body)


def reset(stream: int) -> bytes:
    """Returns the frame that gives a call up."""
    return frame(3, 0, stream, (8).to_bytes(4))


def settings(initial: int | None = None) -> bytes:
    """Returns the frame of a client's settings.

    Args:
        initial: how much of each answer it takes at first, bytes; None leaves that as it is.
    """
    body = b"" if initial is None else (4).to_bytes(2) + initial.to_bytes(4)
    return frame(4, 0, 0, body)


def window_update(stream: int, more: int) -> bytes:
    """Returns the frame by which a client takes so many bytes more."""
    return frame(8, 0, stream, more.to_bytes(4))


def call(stream: int, method: str, message: bytes, *, ends: bool = True) -> bytes:
    """Returns the frames of a call of gRPC with one message; in full, and of 16 KiB at most.

    Args:
        stream: its number, odd.
        method: as gRPC writes it.
        message: the request.
        ends: no further message comes.
    """
    names = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    # Literals without an index and without Huffman's code (RFC 7541, section 6.2.2).
    head = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in names.items()
    )
    whole = b"\0" + len(message).to_bytes(4) + message
    parts = [whole[at : at + 16_384] for at in range(0, len(whole), 16_384)]
    frames = [
        data(stream, part, ends=ends and number == len(parts) - 1)
        for number, part in enumerate(parts)
    ]
    return frame(1, END_HEADERS, stream, head) + b"".join(frames)
