"""The services of argocd's API, one module each: handlers by method."""
