"""A page for those who run a broker: when it plans next, and what is planned."""
