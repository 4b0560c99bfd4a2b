"""The policy that every installation has: ``role:readonly``, ``role:admin``, and the account ``admin``.

Source: Argo CD ``assets/builtin-policy.csv`` (facts; written as a table here).
"""

from __future__ import annotations

from syncline.argo.access.policy import Membership, Permission, Policy

READONLY = "role:readonly"
ADMIN = "role:admin"
ADMIN_ACCOUNT = "admin"
ORIGIN = "built-in policy"

_IN_PROJECTS = "*/*"
"""The pattern of all objects of the kinds that are named with their project."""
_READ = {
    "applications": _IN_PROJECTS,
    "applicationsets": _IN_PROJECTS,
    "certificates": "*",
    "clusters": "*",
    "repositories": "*",
    "write-repositories": "*",
    "projects": "*",
    "accounts": "*",
    "gpgkeys": "*",
    "logs": _IN_PROJECTS,
}
_WRITE = {
    "applications": (
        _IN_PROJECTS,
        "create update update/* delete delete/* sync rollback override action/*",
    ),
    "applicationsets": (_IN_PROJECTS, "get create update delete"),
    "certificates": ("*", "create update delete"),
    "clusters": ("*", "create update delete"),
    "repositories": ("*", "create update delete"),
    "write-repositories": ("*", "create update delete"),
    "projects": ("*", "create update delete"),
    "accounts": ("*", "update"),
    "gpgkeys": ("*", "create delete"),
    "exec": (_IN_PROJECTS, "create"),
}

BUILTIN = Policy(
    (
        *(Permission(READONLY, resource, "get", objects, "allow", ORIGIN) for resource, objects in _READ.items()),
        *(
            Permission(ADMIN, resource, action, objects, "allow", ORIGIN)
            for resource, (objects, actions) in _WRITE.items()
            for action in actions.split()
        ),
    ),
    (Membership(ADMIN, READONLY), Membership(ADMIN_ACCOUNT, ADMIN)),
)
"""Comes before every other policy."""
