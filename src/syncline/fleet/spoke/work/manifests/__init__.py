"""The manifests of a work: how each is applied and looked at."""
