"""Several machines and their policies on one clock."""
