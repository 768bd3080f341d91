"""What exchange has brought a site, by its own journal."""
