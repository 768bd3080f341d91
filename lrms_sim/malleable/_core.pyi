# The malleable machine, used from compiled code alone.
