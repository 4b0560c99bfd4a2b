"""Records what callers did, as upstream's server does: :func:`record`. Rules: Argo CD ``util/argo/audit_logger.go``."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from syncline.control.events import EVENTS, event_object
from syncline.control.plan import Emit
from syncline.kube import client
from syncline.kube.objects import Obj, meta, name_of, namespace_of
from syncline.web.access import Caller
from syncline.web.parts import Parts

log = logging.getLogger("syncline.web")
COMPONENT = "argocd-server"
NO_NOTES: Mapping[str, str] = {}


def user_of(caller: Caller) -> str:
    """Return the name under which a caller is recorded."""
    email = caller.claims.get("email")
    return email if caller.issuer != "argocd" and isinstance(email, str) and email else caller.subject


async def record(
    parts: Parts, caller: Caller, about: Obj, reason: str, action: str, notes: Mapping[str, str] = NO_NOTES
) -> None:
    """Write an Event about an object, with the caller and ``notes`` as annotations, and a line of the log; a failure is
    only logged."""
    user, now = user_of(caller) or "Unknown user", parts.clock.now()
    event = event_object(Emit(about, reason, f"{user} {action}", COMPONENT), now)
    name = f"{name_of(about)[:200]}.{int(now.timestamp() * 1_000_000) * 1000:x}"
    event["metadata"] = {**meta(event), "name": name, "annotations": {**notes, "user": user}}
    log.info("%s %s/%s: %r %s", about.get("kind"), namespace_of(about), name_of(about), user, action)
    answer = await parts.state.port.send(client.create(EVENTS, event))
    if not answer.ok:
        log.warning(
            "%s %s/%s: the Event %s could not be written: %s",
            about.get("kind"),
            namespace_of(about),
            name_of(about),
            reason,
            answer.refusal().message,
        )
