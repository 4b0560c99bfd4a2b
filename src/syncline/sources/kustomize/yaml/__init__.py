"""Documents as kustomize keeps and writes them."""
