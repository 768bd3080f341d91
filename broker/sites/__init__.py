"""Sites as the broker uses them, pretended or over gRPC, and what it wants done there."""
