"""What is removed: owned objects, namespaces, old pods and events."""
