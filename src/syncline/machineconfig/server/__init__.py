"""The config server: serves a pool's rendered config to machines that join the cluster."""
