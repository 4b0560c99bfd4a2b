"""Installs a pattern on an embedded cluster with operators in virtual time, from folders alone.

Entry points: :func:`play`, and :class:`Playing` for those who look in between. No host is asked: what lies elsewhere is
named in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.operators.folders import FolderCatalogs
from syncline.assembly.operators.objects import operators_objects
from syncline.assembly.operators.role import operators_role
from syncline.assembly.patterns.copies import CopiedReader, Copy
from syncline.control.executor import run_in_place
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import PatchType, Request
from syncline.kube.kinds.validatedpatterns import PATTERN
from syncline.kube.objects import Obj, dig, gvk_of, name_of, namespace_of
from syncline.kube.yaml.loading import YamlError, load
from syncline.patterns.installing.config import ARGO, CHARTS, LEGACY_OPERATOR_NAMESPACE
from syncline.patterns.installing.observe import BUNDLE
from syncline.patterns.installing.report import Child, Operator, Wait, Waits, children_of, held_rows, operators_of
from syncline.patterns.installing.timeline import LISTED, Row, by_schedule, in_order, rows_of
from syncline.patterns.operators.behaving import Behaviours
from syncline.patterns.operators.catalogs.model import Catalog
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.repository import commit_files
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.world import World
from syncline.sources.helm.patterns import KNOWN

REPOSITORY: Final = "https://git.example.com/patterns/"
"""Where the pattern is said to lie, with its name."""
NAMESPACE: Final = LEGACY_OPERATOR_NAMESPACE
STEP_S: Final = 5.0
"""Virtual seconds between two looks, and for the controllers to begin."""
SETTLED_S: Final = 60.0
"""Virtual seconds between the objects of before and the pattern."""
ABOUT: Final = "Chart.yaml"
WELL: Final = timedelta(seconds=60)
"""How long all has to be well before a rehearsal ends."""
_CONFIG: Final = "/apis/config.openshift.io/v1"
_PATTERNS: Final = f"/apis/{PATTERN.group}/{PATTERN.version}/namespaces/{NAMESPACE}/patterns"


@dataclass(frozen=True, slots=True)
class Platform:
    """What an OpenShift cluster says of itself; value files are chosen by it. ``name`` empty: no OpenShift."""

    name: str = "AWS"
    version: str = "4.18.0"
    domain: str = "apps.hub-one.example.com"

    def objects(self) -> list[Obj]:
        """Return the objects in which a cluster says it, and the certificates that its network operator would write."""
        specs: tuple[tuple[str, str, Obj], ...] = (
            ("ClusterVersion", "version", {"clusterID": "rehearsal"}),
            ("Infrastructure", "cluster", {"platformSpec": {"type": self.name}}),
            ("Ingress", "cluster", {"domain": self.domain}),
        )
        api = "config.openshift.io/v1"
        found = (
            {"apiVersion": api, "kind": kind, "metadata": {"name": one}, "spec": spec} for kind, one, spec in specs
        )
        bundle = {"name": BUNDLE, "namespace": ARGO}
        return [
            *found,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGO}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": bundle,
                "data": {"ca-bundle.crt": "of the rehearsal"},
            },
        ]

    @property
    def status(self) -> Obj:
        """The status of the ClusterVersion."""
        return {"desired": {"version": self.version}, "history": []}


@dataclass(frozen=True, slots=True)
class Installation:
    """A pattern in ``folder``, as it is on the disk. ``spec``: more fields of the Pattern; ``files``: more files of its
    repository by path; ``copies``: folders by address, as of :class:`CopiedReader`; ``objects``: what the cluster has
    before."""

    folder: Path
    name: str
    group: str
    catalogs: FolderCatalogs
    behaviours: Behaviours
    spec: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, Path] = field(default_factory=dict)
    objects: Sequence[Obj] = ()
    platform: Platform = Platform()
    nodes: int = 3
    seed: int = 1
    late: Mapping[str, timedelta] = field(default_factory=dict)
    """Packages that their catalogue offers only so long after the pattern came."""

    @property
    def pattern(self) -> Obj:
        git = {"targetRepo": f"{REPOSITORY}{self.name}", "targetRevision": "main"}
        spec = {"clusterGroupName": self.group, "gitSpec": git, **self.spec}
        metadata = {"name": self.name, "namespace": NAMESPACE}
        return {"apiVersion": PATTERN.api_version, "kind": PATTERN.kind, "metadata": metadata, "spec": spec}


@dataclass(frozen=True, slots=True)
class Played:
    """``calm``: nothing changed any more when the rehearsal ended; else its time was over."""

    pattern: Obj
    rows: list[Row]
    operators: list[Operator]
    children: list[Child]
    waits: list[Wait]
    began: datetime
    ended: datetime
    calm: bool

    @property
    def well(self) -> bool:
        """Whether all operators and Applications are as they should be."""
        every = bool(self.children) and all(one.well for one in self.children)
        return every and all(one.ended is not None for one in self.operators)


class Playing:
    """A cluster on which a pattern is being installed. ``scratch``: a folder for repositories."""

    def __init__(self, asked: Installation, scratch: Path) -> None:
        self.asked = asked
        copies = {f"{CHARTS}{name}": copy for name, copy in _own_charts(scratch / "charts").items()}
        for number, (address, folder) in enumerate(sorted(asked.copies.items())):
            copies[address] = _copy(folder, scratch / f"copy-{number}")
        commit_files(read_files(asked.folder).changed(asked.files), scratch / "pattern")
        copies[str(dig(asked.pattern, "spec", "gitSpec", "targetRepo"))] = Copy(scratch / "pattern")
        self.reader = CopiedReader(scratch / "mirrors", copies)
        self.world = World(self.reader, seed=asked.seed, settings=AppSettings(), nodes=asked.nodes)
        self.driver = self.world.driver
        self.began = self.world.clock.now()
        self.world.start_role(
            operators_role(self._offers, asked.behaviours, operators_objects(asked.catalogs.catalogs))
        )
        self.world.start_patterns(self.reader)
        self.driver.advance(STEP_S)
        self._prepare()
        self.began = self.changed = self.world.clock.now()
        self._waits, self._seen, self._signs = Waits(), -1, signs_of(asked.name, ())

    def _offers(self, source: Obj) -> Catalog | str:
        found, passed = self.asked.catalogs(source), self.world.clock.now() - self.began
        missing = {name for name, late in self.asked.late.items() if passed < late}
        if isinstance(found, str) or not missing:
            return found
        return replace(found, packages={key: one for key, one in found.packages.items() if key not in missing})

    def _prepare(self) -> None:
        here = self.asked.platform
        run_in_place(ensure_objects([*(here.objects() if here.name else ()), *self.asked.objects]), self.world.admin)
        if here.name:
            path = f"{_CONFIG}/clusterversions/version/status"
            self.world.send("PATCH", path, {"status": here.status}, PatchType.MERGE)
        if self.asked.objects:
            self.driver.advance(SETTLED_S)

    def install(self) -> None:
        """Make the Pattern."""
        self.world.send("POST", _PATTERNS, self.asked.pattern)

    def advance(self, seconds: float) -> None:
        """Advance in steps, and remember who waits for what."""
        end = self.world.clock.now() + timedelta(seconds=seconds)
        while (left := (end - self.world.clock.now()).total_seconds()) > 0:
            self.driver.advance(min(left, STEP_S))
            self._look()

    def _look(self) -> None:
        revision, now = self.world.core.store.revision, self.world.clock.now()
        if revision == self._seen:
            return
        objects = self.objects()
        self._seen = revision
        self._waits.look(self.asked.name, objects, now)
        signs = signs_of(self.asked.name, objects)
        if signs != self._signs:
            self._signs, self.changed = signs, now

    def objects(self) -> list[Obj]:
        """Return what a timeline is made of."""
        found: list[Obj] = []
        for kind in LISTED:
            answer = self.world.admin.send(Request("GET", kind.path))
            found += kind.items(answer.obj) if answer.ok else ()
        return found

    def until_calm(self, limit: timedelta, calm: timedelta) -> bool:
        """Advance until all is well, or nothing has changed for ``calm``; False: ``limit`` came first."""
        end = self.world.clock.now() + limit
        while self.world.clock.now() < end:
            self.advance(STEP_S)
            quiet = self.world.clock.now() - self.changed
            if quiet >= calm or (quiet >= WELL and self.played(calm=True).well):
                return True
        return False

    def played(self, *, calm: bool) -> Played:
        """Return what has become of it."""
        objects, now, name = self.objects(), self.world.clock.now(), self.asked.name
        pattern = self.world.send("GET", f"{_PATTERNS}/{name}")
        return Played(
            pattern,
            in_order(rows_of(pattern, objects, now), held_rows(self._waits.made)),
            operators_of(name, objects),
            children_of(name, objects),
            list(self._waits.made),
            self.began,
            now,
            calm,
        )


def signs_of(pattern: str, objects: Sequence[Obj]) -> list[tuple[str, ...]]:
    """Return what of an installation people would call a change: no counts of retries, no heartbeats."""
    made: list[tuple[str, ...]] = []
    made += ((one.namespace, one.name, one.sync, one.health) for one in children_of(pattern, objects))
    made += ((one.namespace, one.name, one.csv, one.phase) for one in operators_of(pattern, objects))
    for one in objects:
        if gvk_of(one).kind in ("StorageClass", "Job") and not by_schedule(one):
            made.append((gvk_of(one).kind, namespace_of(one), name_of(one), str(dig(one, "status", "completionTime"))))
    return sorted(made)


def play(
    asked: Installation,
    scratch: Path,
    *,
    limit: timedelta = timedelta(hours=4),
    calm: timedelta = timedelta(minutes=20),
) -> Played:
    """Install a pattern in virtual time, until all is well, nothing has changed for ``calm``, or ``limit``.

    ``scratch``: a folder that exists. Raises :class:`ScenarioError` for a folder that is too large, or a chart without
    a readable ``Chart.yaml``."""
    playing = Playing(asked, scratch)
    playing.install()
    return playing.played(calm=playing.until_calm(limit, calm))


def _own_charts(where: Path) -> dict[str, Copy]:
    """Return by name the charts that Syncline renders itself: their names and versions are enough."""
    abouts = {name: f"apiVersion: v2\nname: {name}\nversion: {known.version}\n" for name, known in KNOWN.items()}
    commit_files(Files({f"{name}/{ABOUT}": text.encode() for name, text in abouts.items()}), where)
    return {name: Copy(where, name, known.version) for name, known in KNOWN.items()}


def _copy(folder: Path, where: Path) -> Copy:
    """Return what stands for an address; a folder with a chart stands for that chart."""
    files = read_files(folder)
    try:
        found = load(files.content.get(ABOUT, b"{}"), file=str(folder / ABOUT))
    except YamlError as error:
        raise ScenarioError(f"the copy of a chart cannot be read: {error}", usage=True) from error
    commit_files(files, where)
    return Copy(where, version=str(found.get("version") or "") if isinstance(found, dict) else "")
