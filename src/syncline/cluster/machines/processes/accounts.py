"""Users and groups of a pod's commands, from its security contexts. Pure; the process runtime uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncline.cluster.machines.sandbox.ownership import WIDTH
from syncline.kube.objects import Obj, dig

ANYBODY = 65532
"""User of commands that must not run as root and name no user, as in rootless images."""
PARTS = ("initContainers", "containers", "ephemeralContainers")


class AccountsError(Exception):
    """More users and groups than a pod may use here."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """``user``, ``group`` and supplementary ``groups`` of one container. ``known``: all ids in its pod, in order, root
    first. ``shared``: the group of its volumes (fsGroup); ``sole``: the user of all containers, if it is the same."""

    user: int
    group: int
    groups: tuple[int, ...]
    known: tuple[int, ...]
    shared: int | None = None
    sole: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"user": self.user, "group": self.group, "groups": list(self.groups), "known": list(self.known)}


def accounts_of(pod: Obj, container: Obj) -> Accounts:
    """Raises AccountsError."""
    whole: Obj = dig(pod, "spec", "securityContext", default=None) or {}
    shared = whole.get("fsGroup")
    further = sorted({*map(int, whole.get("supplementalGroups") or ()), *([int(shared)] if shared is not None else [])})
    containers = [each for part in PARTS for each in dig(pod, "spec", part, default=None) or ()]
    users = {_user(whole, each) for each in containers}
    groups = {_group(whole, each) for each in containers}
    known = tuple(sorted({0, *users, *groups, *further}))
    if len(known) > WIDTH:
        raise AccountsError(
            f"the security contexts of the pod name {len(known)} users and groups; at most {WIDTH} with root can be "
            "given to local processes"
        )
    asked = {_context(whole, each, "runAsUser") for each in containers}
    sole = next(iter(asked)) if len(asked) == 1 else None
    user, group = _user(whole, container), _group(whole, container)
    return Accounts(user, group, tuple(further), known, None if shared is None else int(shared), sole)


def _context(whole: Obj, container: Obj, key: str) -> Any:
    """Return the container's value, else the pod's."""
    own = (container.get("securityContext") or {}).get(key)
    return whole.get(key) if own is None else own


def _user(whole: Obj, container: Obj) -> int:
    user = _context(whole, container, "runAsUser")
    if user is not None:
        return int(user)
    return ANYBODY if _context(whole, container, "runAsNonRoot") else 0


def _group(whole: Obj, container: Obj) -> int:
    """Return the group; default is root's, as in runtimes for users that the image does not know."""
    group = _context(whole, container, "runAsGroup")
    return 0 if group is None else int(group)
