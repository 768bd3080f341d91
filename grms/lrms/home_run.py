"""How a job runs at its own site. Pure, and quick to import: `grms submit` needs no more of the port."""

from grms.util.values import dataclass


@dataclass(frozen=True, slots=True)
class HomeRun:
    """Where and how a job was submitted, so that its own site runs it as the batch system itself would.

    Attributes:
        folder: its working directory.
        environment: `NAME=value` each: complete except for the batch system's own.
        options: of the batch system's own program, `--name` or `--name=value`.
    """

    folder: str
    environment: tuple[bytes, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def umask(self) -> int:
        """The umask of its user from Slurm's variables; negative if missing."""
        found = [each[12:] for each in self.environment if each.startswith(b"SLURM_UMASK=")]
        is_mask = bool(found) and found[-1].isdigit() and not found[-1].strip(b"01234567")
        return int(found[-1], 8) & 0o777 if is_mask else -1
