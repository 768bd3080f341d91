"""Snakemake's jobs at a Hanse site: `snakemake --executor hanse`.

Snakemake finds the three names below by the name of this package.
"""

from snakemake_executor_plugin_hanse.executor import Executor
from snakemake_executor_plugin_hanse.settings import ExecutorSettings, common_settings

__all__ = ["Executor", "ExecutorSettings", "common_settings"]
