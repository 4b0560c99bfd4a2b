"""The user of a request, as authentication finds it and authorization judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UserInfo:
    """authentication.k8s.io UserInfo: ``groups`` in the order given, ``extra`` values as lists."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = UserInfo("system:anonymous", ("system:unauthenticated",))
ADMIN = UserInfo("kubernetes-admin", ("system:masters", "system:authenticated"))


def service_account_user(namespace: str, name: str, uid: str = "") -> UserInfo:
    """Return the user of a service account, with its three groups (serviceaccount.MakeUsername, MakeGroupNames)."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", groups, uid)
