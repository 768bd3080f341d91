"""The rules of a site: events in, commands out; pure."""
