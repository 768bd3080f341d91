# Waiting jobs are kept by strategies alone; there is nothing here for Python.
