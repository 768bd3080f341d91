"""What the plugin uses of Snakemake's package of this name, for tests without Snakemake.

`benchmarks.snakemake_jobs` runs the plugin under the real one.
"""
