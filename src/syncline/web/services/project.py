"""ProjectService: lists and gets AppProjects. Rules: Argo CD ``server/project/project.go``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.objects import Obj, name_of
from syncline.web.access import Access, require
from syncline.web.state import PROJECTS, State
from syncline.web.wire.calls import Call, Handler


@dataclass(frozen=True, slots=True)
class Projects:
    """The service; see :meth:`handlers`."""

    state: State
    access: Access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/project.ProjectService/"
        return {service + "List": self.list, service + "Get": self.get}

    async def list(self, call: Call, _: Obj) -> Obj:
        """Return the AppProjects that a caller may get."""
        found = [
            project
            for project in self.state.cache.objects(PROJECTS, self.state.namespace)
            if self.access.permits(call.caller, "projects", "get", name_of(project))
        ]
        revision = self.state.cache.observed_revision(PROJECTS)
        return {"metadata": {"resourceVersion": str(revision or "")}, "items": found}

    async def get(self, call: Call, query: Obj) -> Obj:
        """Return one AppProject."""
        name = query.get("name", "")
        require(self.access, call.caller, "projects", "get", name)
        return await self.state.fresh(PROJECTS, self.state.namespace, name)
