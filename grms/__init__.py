"""A site's grid layer: transfer and location policies, and the federation kernel."""
