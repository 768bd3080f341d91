"""Free ports of the loopback, which nobody else is given for a while.

A port that was only looked up and let go of again may be given to the next who asks, in this process
or in another: of 64 looked up one after the other two are the same once in seven times, and two
gRPC servers share such a port without a word. So each port here has had a connection, and the
kernel remembers that for a minute (TIME_WAIT of TCP, RFC 9293 section 3.6.1): meanwhile it gives the
port to nobody who asks for any, neither to listen nor to connect from, and still lets it be listened
on by its number with `SO_REUSEADDR`, which every server of ours sets.
"""

import socket


def free_port() -> int:
    """Returns a port of the loopback that nobody uses now or is given for the next minute."""
    with socket.socket() as listening, socket.socket() as calling:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        calling.connect(listening.getsockname())
        answering, _ = listening.accept()
        # Who closes first is who remembers.
        answering.close()
        return int(listening.getsockname()[1])


def free_ports(count: int) -> list[int]:
    """Returns ports as `free_port` does, each once.

    Args:
        count: how many.
    """
    return [free_port() for _ in range(count)]
