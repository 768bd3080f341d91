"""A site's configuration, and the files it is read from."""
