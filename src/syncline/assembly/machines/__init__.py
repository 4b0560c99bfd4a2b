"""Machines, their configs and their agents on the embedded cluster."""
