"""Certificates: their contents, a private authority, files and commands."""
