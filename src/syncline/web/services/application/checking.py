"""Checks an Application before it is written, and writes it: :class:`Checked`.

Rules: Argo CD ``server/application/application.go`` (getAppProject, validateAndNormalizeApp, waitSync) and
``util/argo`` (ValidateRepo).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from syncline.argo.application import AppView
from syncline.argo.hydrator import dry_source
from syncline.argo.project import permits_app_namespace
from syncline.argo.project.scoped import with_scoped
from syncline.argo.requests.refused import Refused
from syncline.argo.requests.writing import check_destination, check_names, check_permitted, invalid_spec
from syncline.argo.settings import parse_system, with_globals
from syncline.assembly.sources.reading import GitSourceReader
from syncline.gitops.application.observing.observe import AppSettings, render_context
from syncline.kube import client
from syncline.kube.errors import ApiError, Conflict
from syncline.kube.objects import Obj, meta, name_of, namespace_of, resource_version
from syncline.kube.text.names import dns_label, dns_subdomain
from syncline.web.access import Caller, require
from syncline.web.auditing import record
from syncline.web.parts import Parts
from syncline.web.services.application.finding import Finder, project_of
from syncline.web.state import APPLICATIONS, PROJECTS, SECRET
from syncline.web.wire.status import Code, RpcError

MAX_CONFLICTS = 10
CODES = {"InvalidArgument": Code.INVALID_ARGUMENT, "FailedPrecondition": Code.FAILED_PRECONDITION}


@contextmanager
def refusals() -> Iterator[None]:
    """Raise a refusal of the block as :class:`RpcError`."""
    try:
        yield
    except Refused as refused:
        raise RpcError(CODES.get(refused.code, Code.UNKNOWN), str(refused)) from None


@dataclass(frozen=True, slots=True)
class Checked:
    """Projects, checks and writes that the methods share."""

    parts: Parts
    finder: Finder

    def project(self, app: Obj) -> Obj:
        """Return the project of an Application, with its own repositories, clusters and what global projects add.

        Raises :class:`RpcError` if there is none or it does not admit the Application: the same for both.
        """
        state, name = self.parts.state, project_of(app)
        found = state.project(name)
        if found is None or not permits_app_namespace(found, namespace_of(app), state.namespace):
            text = f'app is not allowed in project "{name}", or the project does not exist'
            raise RpcError(Code.INVALID_ARGUMENT, text)
        secrets = state.cache.objects(SECRET, state.namespace)
        found = with_scoped(found, secrets, self.parts.destinations.clusters())
        named = {name_of(one): one for one in state.cache.objects(PROJECTS, state.namespace)}
        return with_globals(found, parse_system(state.data("argocd-cm")).global_projects, named)

    async def check(self, caller: Caller, app: Obj, *, validate: bool) -> None:
        """Raise :class:`RpcError` unless an Application may be written; ``validate``: also read its sources."""
        with refusals():
            check_names(app)
        wrong = [*dns_subdomain(name_of(app)), *dns_label(namespace_of(app))]
        if wrong:
            raise RpcError(Code.INVALID_ARGUMENT, f'Application.argoproj.io "{name_of(app)}" is invalid: {wrong[0]}')
        known = await self._known(app)
        if known is not None and project_of(known) != project_of(app):
            require(self.parts.access, caller, "applications", "create", self.finder.right_of(app))
            require(self.parts.access, caller, "applications", "update", self.finder.right_of(known))
        project, clusters = self.project(app), self.parts.destinations.clusters()
        with refusals():
            check_destination(app, clusters)
            check_permitted(app, project, self.parts.state.namespace, clusters)
        if validate:
            await self._read(app)

    async def _known(self, app: Obj) -> Obj | None:
        try:
            return await self.parts.state.fresh(APPLICATIONS, namespace_of(app), name_of(app))
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise

    async def _read(self, app: Obj) -> None:
        """Render the sources once: those of a hydrator are dry, since its branch may not be there yet."""
        view = AppView(app)
        sources = (dry_source(view.hydrator),) if view.hydrator is not None else view.sources
        revisions = tuple(str(one.get("targetRevision") or "") for one in sources)
        context = render_context(view, AppSettings(control_namespace=self.parts.state.namespace))
        found = await self.parts.content.manifests(sources, revisions, context)
        if not found.error or "matched no files" in found.error:
            return
        for source in sources:
            url = str(source.get("repoURL") or "")
            look = partial(GitSourceReader.unreachable, source=source, project=view.project)
            far = await self.parts.content.ask(view.project, url, look)
            if far:
                with refusals():
                    raise invalid_spec(app, [f"repository not accessible: {far}"])
        with refusals():
            path = str(sources[0].get("path") or "")
            raise invalid_spec(app, [f"Unable to generate manifests in {path}: {found.error}"])

    async def change(self, app: Obj, make: Callable[[Obj], Obj]) -> Obj:
        """Write what ``make`` returns for the Application as it is. Raises :class:`RpcError` and ``ApiError``."""

        async def write(known: Obj) -> Obj:
            wanted = make(known)
            body = {**wanted, "metadata": {**meta(wanted), "resourceVersion": resource_version(known)}}
            return known if same(known, body) else await self.parts.state.write(APPLICATIONS, client.update, body)

        return await self.written(app, write)

    async def written(self, app: Obj, write: Callable[[Obj], Awaitable[Obj]]) -> Obj:
        """Return what ``write`` makes of an Application, given its newest state again after a conflict. Raises
        :class:`RpcError` and ``ApiError``."""
        for _ in range(MAX_CONFLICTS):
            try:
                return await write(app)
            except Conflict:
                app = await self.parts.state.fresh(APPLICATIONS, namespace_of(app), name_of(app))
        raise RpcError(Code.INTERNAL, "Failed to update application. Too many conflicts")

    async def record(self, caller: Caller, app: Obj, reason: str, action: str) -> None:
        """Write the Event of what a caller did to an Application."""
        view = AppView(app)
        server, namespace = str(view.destination.get("server") or ""), view.destination_namespace
        await record(self.parts, caller, app, reason, action, {"dest-server": server, "dest-namespace": namespace})


def same(app: Obj, body: Obj) -> bool:
    """Return whether writing ``body`` would change nothing, so that no event follows."""
    left, right = ({key: value for key, value in one.items() if key != "metadata"} for one in (app, body))
    return left == right and meta(app) == meta(body)


def named(app: Obj, namespace: str) -> Obj:
    """Return an Application of a request in its namespace, by default ``namespace``."""
    return {**app, "metadata": {**meta(app), "namespace": namespace_of(app) or namespace}}


def setting(data: Mapping[str, str], key: str) -> bool:
    """Return whether a switch of a ConfigMap's data is on."""
    return data.get(key, "").lower() == "true"
