"""Links to partners."""
