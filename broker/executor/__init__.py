"""Sites as the broker uses them, simulated or over gRPC, and its calls to them."""
