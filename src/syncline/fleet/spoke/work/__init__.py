"""The agent of works: applies the manifests of ManifestWorks, and says what became of them."""
