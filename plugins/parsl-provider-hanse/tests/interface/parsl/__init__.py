"""What the provider uses of Parsl, for tests without it.

`benchmarks.parsl_tasks` runs the provider under the real one.
"""
