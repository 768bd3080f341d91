"""What all studies share: cases, samples, statements, tables, charts."""
