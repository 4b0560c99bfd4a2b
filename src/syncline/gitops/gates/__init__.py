"""Gates: what the cluster has to have before a wave begins, beyond the health of one object."""
