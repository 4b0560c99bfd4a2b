"""Requests over HTTP: kubeconfigs, credentials, pace."""
