"""Prices of electricity and carbon intensities over time, what machines draw, and jobs that wait for cheap hours."""
