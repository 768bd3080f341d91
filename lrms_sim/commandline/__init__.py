"""What the commands of all four packages have in common."""
