# Moves are made by tabu search alone; there is nothing here for Python.
