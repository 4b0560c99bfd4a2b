"""The served resources: discovery, tables, custom resources, aggregation."""
