"""The services of argocd's API, one module each: handlers by method; they meet Kubernetes at ``web/state.py``."""
