# Nothing here is called from Python.
