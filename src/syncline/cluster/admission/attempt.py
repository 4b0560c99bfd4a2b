"""One undecided write, as admission sees it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from syncline.base.entropy import Entropy
from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.registry import Resource
from syncline.kube.errors import FieldCause, Forbidden
from syncline.kube.objects import Obj


def _unheard(*said: str) -> None:
    """Ignore a warning; the default of attempts without a listener."""


class Attempt(msgspec.Struct, frozen=True):
    """``verb`` is create, update or delete; ``name`` is empty for a generated one, and then ``called`` is used in
    refusals. ``warn`` adds a warning for the caller, ``annotate`` an entry for the audit log."""

    verb: str
    resource: Resource
    user: UserInfo
    namespace: str
    name: str
    subresource: str
    now: datetime
    entropy: Entropy
    dry_run: bool = False
    called: str = ""
    warn: Callable[[str], None] = _unheard
    annotate: Callable[[str, str], None] = _unheard

    def concerns(self, storage: str, subresource: str = "") -> bool:
        return self.resource.storage == storage and self.subresource == subresource


def forbid(attempt: Attempt, why: str, causes: list[FieldCause] | None = None) -> Forbidden:
    """Return ``pods "web" is forbidden: <why>`` (admission.NewForbidden)."""
    info = attempt.resource.info
    name = attempt.name or attempt.called or "Unknown"
    details: Obj = {"name": name, "kind": info.plural}
    if info.group:
        details["group"] = info.group
    return Forbidden(f'{info.group_resource} "{name}" is forbidden: {why}', details=details, causes=causes or ())
