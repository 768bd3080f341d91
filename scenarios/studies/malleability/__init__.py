"""What malleable jobs bring on recorded logs, by their share, next to EASY with perfect run times."""
