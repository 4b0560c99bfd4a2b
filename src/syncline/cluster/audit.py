"""What the audit log says of a request: ``audit.k8s.io/v1`` Event at level Metadata.

``assembly`` calls :func:`audit_event` for each answered request and writes the lines. Bodies are never in it, so no
secret value can be.
"""

from __future__ import annotations

from urllib.parse import urlencode

from syncline.base.clock import format_micro_time
from syncline.cluster.answered import Answered
from syncline.kube.objects import Obj

__all__ = ["audit_event"]


def audit_event(answered: Answered, audit_id: str) -> Obj:
    """Stage ResponseComplete, or ResponseStarted for a watch, whose end nobody waits for (audit policy's stages)."""
    route, user = answered.route, answered.user
    query = urlencode(answered.request.query or {})
    who: Obj = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        who["uid"] = user.uid
    event: Obj = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": audit_id,
        "stage": "ResponseStarted" if answered.verb == "watch" else "ResponseComplete",
        "requestURI": answered.request.path + (f"?{query}" if query else ""),
        "verb": answered.verb,
        "user": who,
        "sourceIPs": [answered.address] if answered.address else [],
        "userAgent": (answered.request.headers or {}).get("user-agent", ""),
        "responseStatus": {"metadata": {}, "code": answered.status},
        "requestReceivedTimestamp": format_micro_time(answered.began),
        "stageTimestamp": format_micro_time(answered.ended),
    }
    if route.resource:
        named = {
            "resource": route.resource,
            "namespace": route.namespace,
            "name": route.name,
            "apiGroup": route.group,
            "apiVersion": route.version,
            "subresource": route.subresource,
        }
        event["objectRef"] = {key: value for key, value in named.items() if value}
    if answered.annotations:
        event["annotations"] = dict(sorted(answered.annotations.items()))
    return event
