"""Serve the API over HTTP: connections, encodings, responses and webhook calls."""
