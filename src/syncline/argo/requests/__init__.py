"""What may be asked of an Application: whether it may begin, and what it writes. For the server and for commands."""
