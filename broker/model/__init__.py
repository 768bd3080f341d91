"""Workflows, resources, problems and plans; pure."""
