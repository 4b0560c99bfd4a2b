"""Admission of ManifestWorks on the hub."""
