"""Webhooks of Git hosts: authenticates them, parses pushes and pull requests, and finds what they affect.

Called by ``assembly/endpoints/webhooks.py`` with headers and body, and with the Applications of the cache; has no side
effects. Rules: Argo CD ``util/webhook`` (reference argocd-app 5.10).
"""

from syncline.argo.webhooks.match import affected, moved, touches_dry_source
from syncline.argo.webhooks.payload import Push, Received, WebhookRefused, receive
from syncline.argo.webhooks.pulls import PullRequestEvent, concerns

__all__ = [
    "PullRequestEvent",
    "Push",
    "Received",
    "WebhookRefused",
    "affected",
    "concerns",
    "moved",
    "receive",
    "touches_dry_source",
]
