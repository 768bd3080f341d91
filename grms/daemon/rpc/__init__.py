"""Services of gRPC that every daemon has: health, and reflection."""
