"""Launchers."""

from parsl.launchers.base import Launcher


class SingleNodeLauncher(Launcher):
    """Starts workers on one node."""

    def __call__(
        self, command: str, tasks_per_node: int, nodes_per_block: int, script_dir: str = ""
    ) -> str:
        """Returns the lines that start a command."""
        return f"{script_dir}launch {tasks_per_node * nodes_per_block} {command}"
