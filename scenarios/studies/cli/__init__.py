"""The commands `scenario paper` and `scenario study`."""
