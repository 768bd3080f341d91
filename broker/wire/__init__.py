"""Messages of `broker.v1` to the scheduler's values, and back."""
