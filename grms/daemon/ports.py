"""Free loopback ports, which are not assigned again for a while.

A port that was only looked up and released may be given to the next caller, in this process or another: of 64
looked up in sequence two are the same once in seven times, and two gRPC servers silently share such a port. So each
port here has had a connection, which the kernel remembers for a minute (TIME_WAIT of TCP, RFC 9293 section 3.6.1):
meanwhile it does not assign the port for listening or connecting, but still allows listening on it by number with
`SO_REUSEADDR`, which all our servers set.
"""

import socket


def free_port() -> int:
    """Returns a loopback port that is unused, and not assigned again for the next minute."""
    with socket.socket() as listening, socket.socket() as calling:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        calling.connect(listening.getsockname())
        answering, _ = listening.accept()
        # The side that closes first has the TIME_WAIT.
        answering.close()
        return int(listening.getsockname()[1])


def free_ports(count: int) -> list[int]:
    """Returns distinct ports as `free_port` does."""
    return [free_port() for _ in range(count)]
