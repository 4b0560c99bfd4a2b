"""The operating system that the next boot runs."""
