"""What offline pages are made of: their look, their HTML, charts as SVG, long runs as short curves."""
