"""What repositories hold, for who may get them: :class:`RepositoryReading`.

Rules: Argo CD ``server/repository/repository.go``; the reader and its bounds are those of the controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.assembly.sources.reading import GitSourceReader
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError, mask_credentials
from syncline.sources.revision import Refs
from syncline.web.access import require
from syncline.web.parts import Parts
from syncline.web.services.repository.declaring import right_of
from syncline.web.services.repository.shelves import Shelf
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

BRANCHES = "refs/heads/"


@dataclass(frozen=True, slots=True)
class RepositoryReading:
    """The methods that read repositories; see :meth:`handlers`."""

    parts: Parts
    shelf: Shelf

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        return {"/repository.RepositoryService/ListRefs": self.refs}

    async def refs(self, call: Call, query: Obj) -> Obj:
        """Return the branches and tags of a repository."""
        url, project = query.get("repo", ""), query.get("appProject", "")
        require(self.parts.access, call.caller, self.shelf.resource, "get", right_of(self.shelf.find(url, project)))

        def ask(reader: GitSourceReader) -> Refs:
            sources = reader.sources
            lent = sources.border.judge(url, project, local=sources.settings.allow_local)
            return sources.git.lent(sources.border.trusted(lent)).refs()

        try:
            found = await self.parts.content.ask(project, url, ask)
        except SourceError as error:
            raise RpcError(Code.UNKNOWN, mask_credentials(str(error))) from None
        names = [ref.name for ref in found.refs if ref.name.startswith(BRANCHES)]
        return {"branches": [name.removeprefix(BRANCHES) for name in names], "tags": found.tags()}
