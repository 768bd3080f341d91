"""Exactly once, shown: jobs under faults on real or simulated batch systems, counted by themselves and judged by a checker of its own."""
