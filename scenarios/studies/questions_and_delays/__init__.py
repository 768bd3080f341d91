"""What questions, delay and clocks do to the gain of an exchange."""
