"""Readers of Argo CD's objects: Applications, projects, clusters, settings, tracking."""
