"""Reports on a scenario's run: tables for the terminal, and one HTML page with figures."""
