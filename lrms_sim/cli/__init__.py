"""The command `lrms-sim`, and what the commands of all four packages have in common."""
