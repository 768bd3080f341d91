"""Grid Engine: its programs, their output, and the check of a cluster."""
