"""What commands show as JSON: the option `--json`, and the models that make it and give its schemas."""
