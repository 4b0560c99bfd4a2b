"""Reads the rehearsed repository, and copies of others, for each of their addresses: :class:`RehearsedReader`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from syncline.appset.questions import DirectoriesQuestion, FilesQuestion, Question, SecretReference, Value
from syncline.assembly.sources.playbooks import Playbooks
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.masking import mask_credentials
from syncline.base.secret import Secret
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj
from syncline.machineconfig.ansible import reading as playbooks
from syncline.patterns.installing.reading import Found, Wanted
from syncline.rehearsal.given.applications import is_here, localized
from syncline.rehearsal.given.files import Files
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

_NESTED = re.compile(
    r"accumulating resources: accumulation err='accumulating resources from '[^']*': '[^']*' must resolve to a file': "
    r"recursed accumulation of path '[^']*': "
)
"""What Kustomize says before what is wrong, once for each folder on the way to it."""
_AGAIN = re.compile(r" \(asked at \S+; it is asked again at \S+\)$")


class RehearsedReader(GitSourceReader):
    """Reads the rehearsed repository for each of its addresses."""

    moves = False
    """Whether commits of the past arrive while it plays, so that what failed is read again."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache, allow_local=True)
        self.places: Mapping[str, str] = {}
        self.played: Mapping[str, str] = {}
        """Addresses under which AnsibleConfigs name the repository."""
        self.files, self.place = Files({}), ""
        """The rehearsed repository and its place: what names a path of it, at an address of no place, gets it."""
        self.assumed: set[str] = set()
        """What was taken for the rehearsed commit, in sentences."""
        self._failed: dict[object, Manifests] = {}
        """What could not be read. It stays so for a whole rehearsal: nothing outside of it changes meanwhile."""

    def read(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        wanted: int = 0,
    ) -> Manifests:
        mine = self.localized(sources)
        asked = _local(sources, mine, revisions)
        return self._once(
            mine,
            asked,
            now,
            context,
            lambda: super(RehearsedReader, self).read(mine, asked, now, context, wanted=wanted),
        )

    def poll(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext = NO_CONTEXT,
        *,
        since: datetime | None,
        wanted: int = 0,
    ) -> Manifests:
        mine = self.localized(sources)
        asked = _local(sources, mine, revisions)
        return self._once(
            mine,
            asked,
            now,
            context,
            lambda: super(RehearsedReader, self).poll(mine, asked, now, context, since=since, wanted=wanted),
        )

    def _once(
        self,
        sources: tuple[Obj, ...],
        revisions: tuple[str, ...],
        now: datetime,
        context: RenderContext,
        read: Callable[[], Manifests],
    ) -> Manifests:
        """Read, unless that has failed before."""
        key = json.dumps(sources, sort_keys=True), revisions, context, context.kube_version, context.api_versions
        found = self._failed.get(key)
        if found is None:
            found = self._addressed(read())
            if found.error and not self.moves:
                self._failed[key] = found
        return replace(found, resolved_at=now) if found.error else found

    def localized(self, sources: tuple[Obj, ...]) -> tuple[Obj, ...]:
        """Return the sources with places of this machine for their addresses."""
        for one in sources:
            url, revision = str(one.get("repoURL") or ""), str(one.get("targetRevision") or "")
            if url not in self.places and self.place and not one.get("chart") and is_here(self.files, one):
                self.places = {**self.places, url: self.place}
                self.assumed.add(f"{mask_credentials(url)} is this repository, which has the folder {one['path']}")
            if self.places.get(url) == self.place and revision not in ("", "HEAD", "main"):
                self.assumed.add(f"revision {revision} of {mask_credentials(url)} is what is rehearsed")
        return localized(sources, self.places)

    def rows(
        self,
        question: Question,
        secrets: Mapping[SecretReference, Secret],
        now: datetime,
        *,
        since: datetime | None,
        wanted: int,
    ) -> Value:
        """As :class:`~syncline.appset.asking.RowReader`, for generators."""
        if isinstance(question, DirectoriesQuestion | FilesQuestion) and question.repo_url in self.places:
            question = replace(question, repo_url=self.places[question.repo_url], revision="main", trusted=True)
        return super().rows(question, secrets, now, since=since, wanted=wanted)

    def checkout(self, wanted: Wanted, now: datetime) -> Found:
        """As :class:`~syncline.patterns.installing.reading.CheckoutReader`, for patterns."""
        from syncline.assembly.patterns.checkouts import Checkouts

        here = self.places.get(wanted.url)
        local = wanted if here is None else Wanted(here, "main", wanted.names)
        return Checkouts(self.sources).checkout(local, now)

    def playbook(self, wanted: playbooks.Wanted, now: datetime) -> playbooks.Found:
        """As :class:`~syncline.machineconfig.ansible.reading.PlaybookReader`, for AnsibleConfigs."""
        here = self.played.get(wanted.url)
        local = wanted if here is None else replace(wanted, url=here, revision="main")
        found = Playbooks(self.sources).playbook(local, now)
        return replace(found, error=self._known(found.error))

    def _addressed(self, found: Manifests) -> Manifests:
        return replace(found, error=self._known(found.error))

    def _known(self, error: str) -> str:
        """Return an error with the addresses that people know, so that equal rehearsals have equal texts."""
        for url, place in {**self.played, **self.places}.items():
            error = error.replace(place, url)
        return _AGAIN.sub("", _NESTED.sub("", error))


def _local(sources: tuple[Obj, ...], mine: tuple[Obj, ...], revisions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the revisions to read: the branch of a local place where a source's own was asked for."""
    return tuple(
        str(here["targetRevision"]) if here is not one and asked == str(one.get("targetRevision") or "") else asked
        for one, here, asked in zip(sources, mine, revisions, strict=True)
    )
