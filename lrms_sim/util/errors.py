"""The base of every error that is shown to a user as a message; imports nothing, so anything may import it."""


class HanseError(Exception):
    """An error that the user can fix: the text says what is wrong, where, and how to fix it.

    The commands print the text without a traceback and exit with `exit_status`.
    """

    exit_status = 2
