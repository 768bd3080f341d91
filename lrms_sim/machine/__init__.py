"""Simulated machines: replays of workloads, as a whole or step by step."""
