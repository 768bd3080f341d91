"""Errors that Snakemake shows without a traceback."""


class WorkflowError(Exception):
    """The workflow cannot go on."""
