"""Tunnels: connections that a site has opened itself, over which others call it."""
