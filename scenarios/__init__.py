"""Experiments as files: several sites, their workloads and policies, replayed and reported."""
