"""``syncline app``: the verbs of ``argocd app``, a few per module. Start at ``group.py``."""
