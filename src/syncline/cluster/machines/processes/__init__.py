"""Containers as sandboxed processes of this machine."""
