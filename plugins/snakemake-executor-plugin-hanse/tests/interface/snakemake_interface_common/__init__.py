"""What the plugin uses of Snakemake's package of this name, for tests without Snakemake."""
