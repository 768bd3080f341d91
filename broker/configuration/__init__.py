"""The daemon's configuration."""
