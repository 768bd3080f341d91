# Used by tabu search only; nothing is exported to Python.
