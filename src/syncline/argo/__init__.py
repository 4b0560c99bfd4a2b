"""Argo CD's objects, read: Applications, projects, clusters, settings, tracking."""
