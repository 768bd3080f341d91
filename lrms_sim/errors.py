"""The base of every error that is shown to a user as a message; imports nothing, so anything may import it."""


class HanseError(Exception):
    """What a user can put right: the text says what is wrong, where, and how to mend it.

    The commands print the text without a traceback and end with status 2.
    """
