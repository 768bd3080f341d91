"""The site's configuration file, validated."""
