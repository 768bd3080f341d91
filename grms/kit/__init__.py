"""What both daemons are made of: journals, refusals, signals, sockets, pauses."""
