"""Figures of schedules: metrics, fairness, occupancy, samples, robustness."""
