# Sets are kept by the builder alone; there is nothing here for Python.
