"""What Argo CD keeps in Secrets and ConfigMaps beside its own kinds: repositories, credentials, clusters, keys."""
