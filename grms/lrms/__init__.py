"""The local batch system of a site: one interface, and an adapter for each batch system."""
