"""Reports: pages and their parts, charts as SVG, tables in the terminal."""
