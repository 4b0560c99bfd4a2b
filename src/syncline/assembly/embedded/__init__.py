"""The embedded cluster as a server: its API, its controllers, audit, metrics."""
