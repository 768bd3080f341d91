"""Batch systems by the name in the site's configuration."""
