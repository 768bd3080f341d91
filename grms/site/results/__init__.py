"""What jobs leave, and how it comes home."""
