"""Rendered manifests on their way into a Git branch: what a commit says, its files, and the push."""
