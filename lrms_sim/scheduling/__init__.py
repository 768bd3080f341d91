"""Queue disciplines, criteria and strategies, built in or user-defined."""
