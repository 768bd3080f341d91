"""Whether a Slurm runs jobs in container images.

Slurm takes `--container` in any case. On a node whose slurmd has no oci.conf beside its slurm.conf it says nothing of it and
runs the job without its image (22.05), so a site has to know beforehand. It sees the folder of slurm.conf on its own host, of
which nodes have copies, or the same by `configless`; where theirs differs, the site's file says so.
"""

from pathlib import Path
from typing import Final

OCI: Final = "oci.conf"
"""What configures containers (oci.conf(5))."""

KEY: Final = "lrms.images"
"""The key by which a site's operator says it."""


FETCHED: Final = "/run/slurm/conf/slurm.conf"
"""Where a host without a slurm.conf of its own has the one that its slurmd or sackd has fetched (`configless`)."""


def find_oci(own: str, told: str, fetched: str = FETCHED) -> str:
    """Returns the path of an oci.conf that this host has beside a slurm.conf; empty if it has none.

    Accesses the disk.

    Args:
        own: path of the slurm.conf that the site's file names; empty for Slurm's own.
        told: the one that the controller tells of; empty if it does not.
        fetched: the one that is fetched, which counts where the site's file names none.
    """
    for place in filter(None, (own or fetched, told)):
        found = Path(place).parent / OCI
        try:
            if found.is_file():
                return str(found)
        except OSError:
            continue  # of others, who may not be looked at
    return ""


def why_no_images(*, said: bool | None, found: str) -> str:
    """Returns why no job runs in a container image, for users; empty if jobs do.

    `said` is what the site's file says, `None` if nothing; `found` is the path of an oci.conf, empty for none.
    """
    if said is None and not found:
        return (
            f"this site's Slurm has no {OCI}, and would run the job without its container image "
            f"(the operator can set {KEY} = true where nodes run images)"
        )
    return f"this site runs no container images ({KEY} = false)" if said is False else ""
