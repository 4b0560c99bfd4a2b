"""Controllers that create pods, and their shared code: owners, revisions, templates."""
