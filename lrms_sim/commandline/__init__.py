"""What the commands of all four packages have in common, and parts of `lrms-sim`."""
