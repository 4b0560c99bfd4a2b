"""HTTP listeners beside the API: webhooks, probes, metrics, the config server."""
