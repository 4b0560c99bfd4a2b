"""``syncline app``: the verbs of ``argocd app``, a module for each few of them. Start at ``group.py``."""
