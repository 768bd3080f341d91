# Passes along an order, used from compiled code alone.
