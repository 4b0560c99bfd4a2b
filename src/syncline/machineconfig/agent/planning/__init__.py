"""Planning of the node agent's next steps."""
