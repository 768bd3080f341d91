"""What malleable jobs bring on recorded logs, by their share, beside EASY with perfect run times."""
