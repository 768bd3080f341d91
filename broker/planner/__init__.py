"""The planner: heuristics first, then evolution, over one compiled schedule builder."""
