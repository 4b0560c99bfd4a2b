"""What a reconcile of an Application reads, and what it asks for first."""
