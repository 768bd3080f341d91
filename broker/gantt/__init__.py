"""Plans as Gantt charts: the dashboard, pages, and the terminal."""
