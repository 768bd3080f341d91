"""Basics of all four packages: files, messages, durations, options as fields, errors, version."""
