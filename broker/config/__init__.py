"""The broker's configuration file, validated."""
