"""The base of launchers."""


class Launcher:
    """Makes lines of a command."""

    def __call__(
        self, command: str, tasks_per_node: int, nodes_per_block: int, script_dir: str = ""
    ) -> str:
        """Returns the lines that start a command."""
        raise NotImplementedError
