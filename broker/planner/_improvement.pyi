# Local searchers are called by other kernels alone; there is nothing here for Python.
