"""Names, values, outcomes and plots that several packages of `grms` need."""
