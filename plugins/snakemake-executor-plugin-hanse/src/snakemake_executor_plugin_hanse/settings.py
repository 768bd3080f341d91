"""Options of the plugin, and what Snakemake has to know of it."""

from dataclasses import dataclass, field
from typing import Final

from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

RUNTIME_MIN: Final = 60
"""Requested time of a job without `runtime`, minutes."""

TIMEOUT_S: Final = 30
"""Of a call to the site with its retries, seconds."""

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,  # a job has variables of its own
    auto_deploy_default_storage_provider=False,
    can_transfer_local_files=True,
)


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """Options of the command line: `--hanse-socket` and so on."""

    socket: str = field(
        default="",
        metadata={
            "help": "Socket of the site",
            "env_var": False,
            "required": False,
        },
    )
    sites: str = field(
        default="",
        metadata={
            "help": "Sites that may run jobs, with commas between; any by default",
            "env_var": False,
            "required": False,
        },
    )
    home_only: bool = field(
        default=False,
        metadata={
            "help": "Run all jobs at the site itself, whatever its policies say",
            "env_var": False,
            "required": False,
        },
    )
    runtime: int = field(
        default=RUNTIME_MIN,
        metadata={
            "help": "Minutes that a job may take that has no resource runtime",
            "env_var": False,
            "required": False,
        },
    )
    timeout: int = field(
        default=TIMEOUT_S,
        metadata={
            "help": "Seconds for a call to the site with its retries",
            "env_var": False,
            "required": False,
        },
    )
