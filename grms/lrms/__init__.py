"""The local batch system of a site, as a port with adapters."""
