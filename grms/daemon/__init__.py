"""What both daemons are made of: loop, journal, clocks, configuration, signals, sockets."""
