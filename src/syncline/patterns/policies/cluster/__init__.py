"""On a managed cluster: copies of its policies, their templates, and whether the cluster complies."""
