"""A site's daemon: a pure state that decides, and what it needs to be one."""
