"""The pull model: Applications of the hub travel to their clusters as ManifestWorks, and their status returns."""
