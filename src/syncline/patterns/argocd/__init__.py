"""``ArgoCD`` objects: their namespace becomes a control namespace with the settings that they name."""
