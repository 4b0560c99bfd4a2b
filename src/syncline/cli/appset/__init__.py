"""``syncline appset``: ApplicationSets, with the verbs of argocd. One module per group of verbs."""
