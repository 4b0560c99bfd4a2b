"""``syncline admin``: exports, checks of settings and manifests, with the verbs of ``argocd admin``. Start at
``group.py``."""
