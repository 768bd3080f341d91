"""Messages of `grms.v1` to the model's values, and back."""
