"""Controllers that make pods, and what they share: owners, revisions, templates."""
