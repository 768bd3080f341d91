"""Settings of executors."""

import enum
from dataclasses import dataclass


@dataclass
class CommonSettings:
    """What Snakemake has to know of an executor."""

    non_local_exec: bool
    implies_no_shared_fs: bool
    job_deploy_sources: bool
    pass_envvar_declarations_to_cmd: bool = True
    auto_deploy_default_storage_provider: bool = True
    can_transfer_local_files: bool = False


@dataclass
class ExecutorSettingsBase:
    """Options of an executor."""


class SharedFSUsage(enum.Enum):
    """What a shared file system is used for."""

    INPUT_OUTPUT = 1
    SOURCES = 3
