"""Evolution of local scheduling strategies: criteria, tables and rules (papers 000 and 001)."""
