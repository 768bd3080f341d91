"""The experiments of the paper on utility-based scheduling, other baselines, and recorded logs.

Vengerov, "A Reinforcement Learning Framework for Utility-Based Scheduling in Resource-Constrained
Systems".
"""
