"""Plans as pictures: pages with Gantt charts, and the terminal."""
