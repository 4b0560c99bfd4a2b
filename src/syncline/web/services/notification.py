"""NotificationService: names what ``argocd-notifications-cm`` declares. Rules: Argo CD ``server/notification``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.objects import Obj
from syncline.web.state import State
from syncline.web.wire.calls import Call, Handler

CONFIG_MAP = "argocd-notifications-cm"
KINDS = {"ListTriggers": "trigger.", "ListServices": "service.", "ListTemplates": "template."}
"""Methods, and how the keys begin that they list."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """The service; see :meth:`handlers`."""

    state: State

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        return {f"/notification.NotificationService/{name}": self.list for name in KINDS}

    async def list(self, call: Call, _: Obj) -> Obj:
        """Return the names of one kind; a service's type stands before its name."""
        prefix = KINDS[call.method.name]
        names = [key.removeprefix(prefix) for key in self.state.data(CONFIG_MAP) if key.startswith(prefix)]
        if prefix == "service.":
            names = [name.rpartition(".")[2] for name in names]
        return {"items": [{"name": name} for name in sorted(names)]}
