"""The broker's errors."""
