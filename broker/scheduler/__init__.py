"""The pure core of the broker's daemon: events in, commands out."""
