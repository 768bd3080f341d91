"""Pilots: batch jobs of the site whose processors it hands out by the clock, to tasks in reservations."""
