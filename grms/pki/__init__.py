"""Certificates: what they say, a private authority that issues them, its files and its commands."""
