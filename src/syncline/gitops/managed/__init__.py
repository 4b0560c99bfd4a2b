"""Rights of the application controller in the namespaces that it manages."""
