"""Building blocks of both daemons: journals, refusals, signals, sockets, pauses."""
