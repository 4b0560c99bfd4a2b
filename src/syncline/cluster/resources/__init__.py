"""Which resources are served: discovery, tables, custom resources, aggregation."""
