"""The small shell that hooks are written in: a parser and an interpreter that yields what it does."""
