"""The service account to impersonate in a sync, if enabled (``application.sync.impersonation.enabled``).

Pure. Rule: Argo CD ``util/settings/impersonation.go`` (reference argocd-app §2.4): the first entry of
``spec.destinationServiceAccounts`` whose server and namespace match; without one the operation ends in Error.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, namespace_of
from syncline.kube.text.glob import glob_matches

FORBIDDEN = "!*[]{}\\/"
"""Characters that the name of a service account cannot contain, so patterns are refused."""


class AccountError(ValueError):
    """No account can be impersonated; the text is upstream's."""


def account_for(project: Obj, app: Obj, server: str) -> str:
    """Return ``system:serviceaccount:NAMESPACE:NAME``. Raises :class:`AccountError`."""
    namespace = str(dig(app, "spec", "destination", "namespace", default="") or "")
    for item in dig(project, "spec", "destinationServiceAccounts", default=[]) or ():
        if not glob_matches(str(item.get("server") or ""), server):
            continue
        if not glob_matches(str(item.get("namespace") or ""), namespace):
            continue
        name = str(item.get("defaultServiceAccount") or "")
        if not name.strip() or any(char in FORBIDDEN for char in name):
            raise AccountError(f"default service account contains invalid chars '{name}'")
        return f"system:serviceaccount:{name if ':' in name else f'{namespace or namespace_of(app)}:{name}'}"
    raise AccountError(f"no matching service account found for destination server {server} and namespace {namespace}")
