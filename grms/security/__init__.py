"""TLS and certificates: handshakes, a private authority, files."""
