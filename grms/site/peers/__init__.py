"""Partners as the daemon calls them."""
