"""OpenAPI documents of the served API."""
