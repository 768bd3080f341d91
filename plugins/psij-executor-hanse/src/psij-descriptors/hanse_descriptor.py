"""What PSI/J finds: the executor `hanse`."""  # noqa: INP001  # PSI/J's folders are no package

from packaging.version import Version
from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [
    Descriptor(
        name="hanse",
        nice_name="Hanse",
        version=Version("0.1.0"),
        cls="psij_executor_hanse.executor.HanseJobExecutor",
    )
]
