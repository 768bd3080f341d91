"""Policies: whether to keep or take a job, and whom to ask first."""
