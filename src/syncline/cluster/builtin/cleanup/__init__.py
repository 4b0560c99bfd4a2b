"""Deletion of owned objects, namespaces, old pods and events."""
