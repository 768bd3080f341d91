# Called by other kernels only; nothing is exported to Python.
