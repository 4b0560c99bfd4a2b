"""``syncline proj``: AppProjects with the verbs of ``argocd proj``. Start at ``group.py``."""
