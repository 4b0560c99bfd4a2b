"""Events of what callers did, as upstream's server writes them: :func:`tell`."""

from __future__ import annotations

import logging

from syncline.argo.application import AppView
from syncline.control.events import EVENTS, event_object
from syncline.control.plan import Emit
from syncline.kube import client
from syncline.kube.objects import Obj, meta, name_of, namespace_of
from syncline.web.access import Caller
from syncline.web.parts import Parts

log = logging.getLogger("syncline.web")
COMPONENT = "argocd-server"


def username(caller: Caller) -> str:
    """Return the name under which a caller is recorded."""
    email = caller.claims.get("email")
    return email if caller.issuer != "argocd" and isinstance(email, str) and email else caller.subject


async def tell(parts: Parts, caller: Caller, app: Obj, reason: str, action: str) -> None:
    """Write the Event of what a caller did to an Application, and a line of the log; a failure is only logged."""
    user, now, view = username(caller) or "Unknown user", parts.clock.now(), AppView(app)
    event = event_object(Emit(app, reason, f"{user} {action}", COMPONENT), now)
    about = {
        "dest-server": str(view.destination.get("server") or ""),
        "dest-namespace": view.destination_namespace,
        "user": user,
    }
    name = f"{name_of(app)[:200]}.{int(now.timestamp() * 1_000_000) * 1000:x}"
    event["metadata"] = {**meta(event), "name": name, "annotations": about}
    log.info("%s/%s: %s %s", namespace_of(app), name_of(app), user, action)
    answer = await parts.state.port.send(client.create(EVENTS, event))
    if not answer.ok:
        log.warning("the event of it could not be written: %s", answer.refusal().message)
