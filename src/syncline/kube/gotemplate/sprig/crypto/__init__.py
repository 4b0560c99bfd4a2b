"""sprig's functions of secrets: digests, passwords, keys, certificates."""
