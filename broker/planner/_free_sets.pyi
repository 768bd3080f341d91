# Used by the builder only; nothing is exported to Python.
