"""Commands on files alone, without a cluster."""
