"""What can happen to a site, what it may want done, and what it remembers; pure."""
