"""Connections of users and partners: sockets, TLS, admission, limits."""
