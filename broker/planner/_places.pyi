# Places are searched by the builder alone; there is nothing here for Python.
