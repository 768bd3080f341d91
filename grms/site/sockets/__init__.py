"""Where users and partners come in: sockets, TLS, limits, and who may ask how often."""
