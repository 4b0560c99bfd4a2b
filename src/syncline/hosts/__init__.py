"""The node agent on a Linux machine."""
