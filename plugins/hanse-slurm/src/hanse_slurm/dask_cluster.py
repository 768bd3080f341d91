"""A cluster of Dask whose workers are jobs of a site, by dask-jobqueue; needs `hanse-slurm[dask]`.

    from hanse_slurm.dask_cluster import HanseCluster
    cluster = HanseCluster(cores=4, memory="8GB", walltime="01:00:00")

It is dask-jobqueue's `SLURMCluster` with the programs of this package, so that nothing has to be in front of `PATH`, and all
of its options and of the table `jobqueue.slurm` hold. The site is that of `HANSE_SOCKET`. Workers connect to the
scheduler by themselves: those that are to run at partners need a way to it (`scheduler_options`).
"""

import shlex

from dask_jobqueue.slurm import SLURMCluster, SLURMJob

from hanse_slurm.programs import program_words


class HanseJob(SLURMJob):  # type: ignore[misc]  # it has no types
    """A worker, or some of them, as a job of the site."""

    submit_command = shlex.join(program_words("sbatch"))
    cancel_command = shlex.join(program_words("scancel"))


class HanseCluster(SLURMCluster):  # type: ignore[misc]  # it has no types
    """The workers of a scheduler; the arguments are those of `dask_jobqueue.SLURMCluster`."""

    job_cls = HanseJob
