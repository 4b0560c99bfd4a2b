"""A small shell for hooks: a parser, and an interpreter that yields its steps."""
