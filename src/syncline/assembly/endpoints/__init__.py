"""What listens beside the API: webhooks, probes, metrics, the config server."""
