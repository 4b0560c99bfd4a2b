"""The resources of a build: identity, order, merging."""
