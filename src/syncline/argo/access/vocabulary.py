"""The resources and actions of rights, and the names that people use for them: :func:`checked_request`.

Pure. Source: Argo CD ``util/rbac`` and ``cmd/argocd/commands/admin/settings_rbac.go``.
"""

from __future__ import annotations

from syncline.argo.access.enforcing import Request

PROJECT_SCOPED = frozenset(("applications", "applicationsets", "logs", "exec", "clusters", "repositories"))
"""Resources whose objects are ``PROJECT/NAME`` or ``PROJECT/NAMESPACE/NAME``."""
SHORT = {
    "account": "accounts",
    "app": "applications",
    "application": "applications",
    "apps": "applications",
    "cert": "certificates",
    "certificate": "certificates",
    "certs": "certificates",
    "cluster": "clusters",
    "extension": "extensions",
    "gpgkey": "gpgkeys",
    "key": "gpgkeys",
    "log": "logs",
    "proj": "projects",
    "project": "projects",
    "projs": "projects",
    "repo": "repositories",
    "repos": "repositories",
    "repository": "repositories",
}
_READ_WRITE = ("create", "get", "update", "delete")
PERMITTED = {
    "accounts": ("create", "update"),
    "applications": (*_READ_WRITE, "action", "override", "sync", "rollback"),
    "applicationsets": _READ_WRITE,
    "certificates": ("create", "get", "delete"),
    "clusters": _READ_WRITE,
    "exec": ("create",),
    "extensions": ("invoke",),
    "gpgkeys": ("create", "get", "delete"),
    "logs": ("get",),
    "projects": _READ_WRITE,
    "repositories": _READ_WRITE,
    "write-repositories": _READ_WRITE,
}
"""The actions that the server asks about, by resource."""
RESOURCES = (
    "clusters",
    "projects",
    "applications",
    "applicationsets",
    "repositories",
    "write-repositories",
    "certificates",
    "accounts",
    "gpgkeys",
    "logs",
    "exec",
    "extensions",
)
ACTIONS = ("get", "create", "update", "delete", "sync", "rollback", "override", "action", "invoke")
"""What a caller may ask about itself, in upstream's order."""
WITH_PATH = ("update", "delete", "action")
"""Actions on applications that may name what of the application they touch: ``delete/apps/Deployment/web/shop``."""


def checked_request(resource: str, action: str, target: str, *, strict: bool) -> Request:
    """Return the request that a person means. Raises ``ValueError`` for what the server never asks, if ``strict``.

    ``resource`` may be short (``app``); without an object, all objects are meant.
    """
    name = SHORT.get(resource, resource)
    if strict:
        permitted = PERMITTED.get(name)
        if permitted is None:
            raise ValueError(f"'{resource}' is not a valid resource name; allowed: {', '.join(PERMITTED)}")
        verb, slash, _ = action.partition("/")
        if verb not in permitted or (slash and (name != "applications" or verb not in WITH_PATH)):
            raise ValueError(f"'{action}' is not a valid action for {name}; allowed: {', '.join(permitted)}")
    everything = target in ("", "*") and name in PROJECT_SCOPED
    return Request(name, action, "*/*" if everything else target)


ENFORCES_ROLLBACK = "server.rbac.rollback.enforce.enable"
"""Key of ``argocd-cm``: whether rolling back is a right of its own."""
