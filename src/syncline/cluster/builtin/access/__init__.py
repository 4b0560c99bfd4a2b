"""Certificates, roles, service accounts and their tokens."""
