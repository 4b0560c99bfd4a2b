"""Pushes reported by Git hosts: whether the caller is who it should be, what was pushed, which Applications it
concerns.

Called by ``assembly/endpoints/webhooks.py`` with headers and bytes, and with the Applications of the cache; never does
anything itself. Rules: Argo CD ``util/webhook`` (reference argocd-app 5.10).
"""

from syncline.gitops.webhooks.match import affected, touches_dry_source
from syncline.gitops.webhooks.payload import Push, WebhookRefused, receive

__all__ = ["Push", "WebhookRefused", "affected", "receive", "touches_dry_source"]
