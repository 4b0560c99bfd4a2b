"""Describes revisions of an Application's sources: :class:`Revisions`.

Rules: Argo CD ``server/application/application.go`` (RevisionMetadata, RevisionChartDetails).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from syncline.argo.application import AppView
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import format_time
from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import YamlError, load
from syncline.sources.errors import SourceError
from syncline.sources.git.describing import Description, describe
from syncline.sources.git.mirrors import Freshness, moment
from syncline.web.services.application.checking import Checked
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class Revisions:
    """The methods that describe revisions; see :meth:`handlers`."""

    checked: Checked

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service = "/application.ApplicationService/"
        return {service + "RevisionMetadata": self.metadata, service + "RevisionChartDetails": self.chart}

    async def metadata(self, call: Call, asked: Obj) -> Obj:
        """Return author, time, tags and message of a commit."""
        app, source = await self._source(call, asked)
        revision = str(asked.get("revision") or "")
        if not COMMIT.fullmatch(revision):
            raise RpcError(Code.UNKNOWN, f"revision {revision} must be resolved")
        found: Description = await self._read(app, source, partial(_described, revision=revision))
        shown: Obj = {"author": found.author, "date": format_time(found.at), "message": found.message}
        return shown | ({"tags": list(found.tags)} if found.tags else {})

    async def chart(self, call: Call, asked: Obj) -> Obj:
        """Return what a version of a chart says of itself."""
        app, source = await self._source(call, asked)
        if not source.get("chart"):
            raise RpcError(Code.UNKNOWN, f"no chart found for application: {asked.get('name', '')}")
        found: Obj = await self._read(app, source, partial(_chart, revision=str(asked.get("revision") or "")))
        return found

    async def _source(self, call: Call, asked: Obj) -> tuple[Obj, Obj]:
        where = asked.get("appNamespace", ""), asked.get("name", "")
        app = await self.checked.finder.permitted(call.caller, "get", asked.get("project", ""), *where)
        self.checked.project(app)
        return app, source_of(app, asked.get("sourceIndex"), asked.get("versionId"))

    async def _read(self, app: Obj, source: Obj, work: Any) -> Any:
        project = AppView(app).project
        freshness = Freshness(self.checked.parts.clock.now(), wanted=moment())
        look = partial(work, source=source, project=project, freshness=freshness)
        try:
            return await self.checked.parts.content.ask(project, str(source.get("repoURL") or ""), look)
        except SourceError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None


def _described(
    reader: GitSourceReader, *, source: Obj, project: str, freshness: Freshness, revision: str
) -> Description:
    found = reader.sources.open({**source, "path": ""}, revision, project, freshness).revision.sha
    return describe(reader.sources.repository(source, project), found)


def _chart(reader: GitSourceReader, *, source: Obj, project: str, freshness: Freshness, revision: str) -> Obj:
    tree = reader.sources.open(source, revision, project, freshness).tree.whole()
    entries = [one for one in tree.entries if one.path == "Chart.yaml"]
    raw = tree.read(entries).get("Chart.yaml", b"")
    try:
        said = load(raw, file="Chart.yaml")
    except YamlError:
        said = None
    said = said if isinstance(said, dict) else {}
    people = [one for one in said.get("maintainers") or () if isinstance(one, dict)]
    shown = [f"{one.get('name', '')} <{one['email']}>" if one.get("email") else str(one.get("name")) for one in people]
    texts = {field: str(said.get(field) or "") for field in ("description", "home")}
    return texts | {"maintainers": shown}


def source_of(app: Obj, index: int | None, version: int | None) -> Obj:
    """Return a source of an Application, or of a deployment of its history. Raises :class:`RpcError`."""
    sources = list(AppView(app).sources)
    if version is not None:
        history: list[Obj] = dig(app, "status", "history", default=[]) or []
        if not history:
            text = f"version ID {version} not found because the app has no history"
            raise RpcError(Code.UNKNOWN, f"error getting app source by source index and version ID: {text}")
        entry = next((one for one in history if one.get("id", 0) == version), None)
        if entry is None:
            text = f"revision history not found for version ID {version}"
            raise RpcError(Code.UNKNOWN, f"error getting app source by source index and version ID: {text}")
        sources = list(entry.get("sources") or [entry.get("source") or {}])
    at = index or 0
    if not 0 <= at < len(sources):
        count = "is only 1 source" if len(sources) == 1 else f"are only {len(sources)} sources"
        text = f"source index {at} not found because there {count}"
        raise RpcError(Code.UNKNOWN, f"error getting app source by source index and version ID: {text}")
    return sources[at]
