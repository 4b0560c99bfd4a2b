"""Finds the Application that a request names, for those who may know of it: :class:`Finder`.

Rules: Argo CD ``server/application/application.go`` (``getAppEnforceRBAC``). An Application that is missing and one
without permission get the same refusal, unless the caller names its project.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.kube.text.names import dns_label, dns_subdomain
from syncline.web.access import Access, Caller
from syncline.web.state import APPLICATIONS, State, hidden, not_found
from syncline.web.wire.status import Code, RpcError


def project_of(app: Obj) -> str:
    """Return the project of an Application."""
    return dig(app, "spec", "project") or "default"


def projects_of(query: Obj) -> list[str]:
    """Return the projects that a query names, in its new and its old field."""
    return [*(query.get("projects") or ()), *(query.get("project") or ())]


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds Applications, and answers what callers may do with them."""

    state: State
    access: Access

    async def permitted(self, caller: Caller, action: str, project: str, namespace: str, name: str) -> Obj:
        """Return an Application, as the API has it now, on which a caller may carry out ``action``.

        ``project``: where the caller knows it to be, or empty; ``namespace``: empty for the control namespace. Raises
        :class:`RpcError`.
        """
        namespace = namespace or self.state.namespace
        if not self.state.permits(namespace):
            raise RpcError(Code.PERMISSION_DENIED, f"namespace '{namespace}' is not permitted")
        if not name or dns_subdomain(name) or dns_label(namespace):
            raise RpcError(Code.PERMISSION_DENIED, "permission denied")  # no path is made of it
        known = project and self.access.permits(caller, "applications", action, self.right(project, namespace, name))
        try:
            app = await self.state.fresh(APPLICATIONS, namespace, name)
        except ApiError as error:
            if error.reason == "NotFound" and known:
                raise not_found(name) from None
            raise hidden(error) from None
        if project and not known:
            raise RpcError(Code.PERMISSION_DENIED, "permission denied")
        if not self.may(caller, action, app) or (project and project_of(app) != project):
            raise not_found(name) if project else RpcError(Code.PERMISSION_DENIED, "permission denied")
        return app

    def may(self, caller: Caller, action: str, app: Obj) -> bool:
        """Return whether a caller may carry out ``action`` on an Application."""
        return self.access.permits(caller, "applications", action, self.right_of(app))

    def right_of(self, app: Obj) -> str:
        """Return how rights name this Application."""
        return self.right(project_of(app), namespace_of(app), name_of(app))

    def right(self, project: str, namespace: str, name: str) -> str:
        """Return how rights name an Application: its namespace stands in it unless it is the control namespace."""
        return f"{project}/{name}" if namespace == self.state.namespace else f"{project}/{namespace}/{name}"
