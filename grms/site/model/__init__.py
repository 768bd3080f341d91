"""Events of a site, its commands, and what it remembers; pure."""
