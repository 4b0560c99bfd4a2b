"""What a change of machine configs would do to nodes, before anybody makes it."""
