"""Workloads as other programs keep them: accounting of batch systems, archives, other simulators."""
