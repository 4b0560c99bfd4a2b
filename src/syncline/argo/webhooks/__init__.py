"""Push webhooks of Git hosts: authenticates them, parses pushes and finds the affected Applications.

Called by ``assembly/endpoints/webhooks.py`` with headers and body, and with the Applications of the cache; has no side
effects. Rules: Argo CD ``util/webhook`` (reference argocd-app 5.10).
"""

from syncline.argo.webhooks.match import affected, touches_dry_source
from syncline.argo.webhooks.payload import Push, WebhookRefused, receive

__all__ = ["Push", "WebhookRefused", "affected", "receive", "touches_dry_source"]
