"""Pages for the operators of a site: what happens here, and why a job is where it is."""
