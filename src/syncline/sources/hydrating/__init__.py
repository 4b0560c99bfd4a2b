"""Writes rendered manifests into a Git branch: the commit message, the files, the push."""
