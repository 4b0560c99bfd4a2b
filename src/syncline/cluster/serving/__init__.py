"""The API over HTTP: connections, encodings, answers, calls to webhooks."""
