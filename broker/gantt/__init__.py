"""A plan as one HTML page with Gantt charts, which needs no network and no other file."""
