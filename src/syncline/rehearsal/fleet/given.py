"""The world of a fleet, as a few lines of YAML: :class:`FleetWorld`, read by :func:`read_fleet`.

``docs/rehearsal.md`` documents the file. Each entry of ``clusters`` is the world of one cluster, with what the hub
knows of it beside; ``count`` makes many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from syncline.kube.yaml.loading import YamlError, dump, load
from syncline.rehearsal.fields import Field
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import MAX_WORLD_BYTES, WORLD, GivenWorld, objects_at, world_at
from syncline.rehearsal.scenario import ScenarioError

FLEET = ("clusters", "hub")
HUB = ("objects", "away")
KNOWN_ON_THE_HUB = ("name", "count", "labels", "annotations", "away")
MAX_CLUSTERS = 2_000
MAX_AWAY = timedelta(days=7)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A cluster's name is that of its namespace on the hub."""
NODES = [{"name": "node", "count": 3}]
"""Of a cluster whose entry has none."""
NUMBER = "*"
"""Where a name has it, the number of the cluster stands."""


@dataclass(frozen=True, slots=True)
class Away:
    """A stretch after the commit in which a cluster and its hub do not reach one another."""

    begins: timedelta
    ends: timedelta

    def later(self, at: timedelta) -> timedelta:
        """Return when what happens on one side reaches the other."""
        return self.ends if self.begins <= at < self.ends else at


@dataclass(frozen=True)
class ClusterGroup:
    """``count`` clusters alike. ``place``: of the entry in the file; ``world``: of each of them."""

    place: int
    name: str
    world: GivenWorld
    count: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    away: Away | None = None

    def names(self) -> tuple[str, ...]:
        """Return ``NAME-1`` and so on, or NAME itself without a count."""
        if self.count is None:
            return (self.name,)
        pattern = self.name if NUMBER in self.name else f"{self.name}-{NUMBER}"
        return tuple(pattern.replace(NUMBER, str(number)) for number in range(1, self.count + 1))


@dataclass(frozen=True)
class FleetWorld:
    """The fleet before the rehearsal. ``objects``: all that its file names, by path; ``hub``: those of the hub."""

    name: str
    text: str
    groups: tuple[ClusterGroup, ...]
    objects: Files
    hub: Files
    folder: Path
    away: Away | None = None
    """When the hub does not run."""

    def clusters(self) -> dict[str, ClusterGroup]:
        """Return the entry of each cluster by name, in the order of the file."""
        return {name: group for group in self.groups for name in group.names()}

    def aways(self) -> dict[str, tuple[Away, ...]]:
        """Return by cluster when it does not reach its hub."""
        both = ((name, (group.away, self.away)) for name, group in self.clusters().items())
        return {name: mine for name, each in both if (mine := tuple(one for one in each if one is not None))}


def is_fleet(file: Path) -> bool:
    """Return whether a world file has clusters, as far as it can be read: its parser reports what is wrong with it."""
    if not file.is_file() or file.stat().st_size > MAX_WORLD_BYTES:
        return False
    try:
        value = load(file.read_bytes(), file=str(file))
    except YamlError:
        return False
    return isinstance(value, dict) and "clusters" in value


def read_fleet(file: Path) -> FleetWorld:
    """Raises ScenarioError with file, key, value and allowed values."""
    return parse_fleet(file.read_text("utf-8", "replace"), file)


def parse_fleet(text: str, file: Path, objects: Files | None = None) -> FleetWorld:
    """As :func:`read_fleet`, of a text. ``objects``: what its file names, instead of reading it beside the file."""
    try:
        value = load(text.encode(), file=str(file))
    except YamlError as error:
        raise ScenarioError(str(error), usage=True) from error
    at = Field(file, "", value).known(*FLEET)
    read: dict[str, bytes] = {}

    def named(of: Field) -> Files:
        if objects is None:
            found = objects_at(of)
        else:
            paths = of.texts()
            kept = {path: data for path, data in objects.content.items() if any(_below(path, one) for one in paths)}
            found = Files(kept)
        read.update(found.content)
        return found

    groups = []
    for place, one in enumerate(at["clusters"].each()):
        one.known(*KNOWN_ON_THE_HUB, *WORLD)
        groups.append(_group(place, one, named(one["objects"])))
    own = at["hub"].known(*HUB)
    hub = named(own["objects"])
    names = [name for group in groups for name in group.names()]
    if not names or len(names) > MAX_CLUSTERS:
        raise at["clusters"].wrong(f"{len(names)} clusters", f"1 to {MAX_CLUSTERS}: [{{name: edge, count: 3}}]")
    twice = next((name for name in sorted(names) if names.count(name) > 1), "") if len(set(names)) < len(names) else ""
    if twice:
        raise at["clusters"].wrong(f"the cluster {twice} twice", "each name once")
    return FleetWorld(file.name, text, tuple(groups), Files(read), hub, file.parent, _away(own["away"]))


def _away(at: Field) -> Away | None:
    if at.value is None:
        return None
    at.known("from", "for")
    begins, lasts = at["from"].duration(timedelta(0)), at["for"].duration(timedelta(0))
    if not timedelta(0) < lasts <= MAX_AWAY or begins > MAX_AWAY:
        raise at.wrong(str(at.value), "{from: 5m, for: 20m}, since the commit, at most seven days")
    return Away(begins, begins + lasts)


def _below(path: str, one: str) -> bool:
    return path == one or path.startswith(f"{one.rstrip('/')}/")


def _group(place: int, at: Field, objects: Files) -> ClusterGroup:
    name = at.needed("name", "a name, such as edge")
    if not NAME.fullmatch(name.replace(NUMBER, "1", 1)):
        raise at["name"].wrong(repr(name), f"lower case letters, digits, - and one {NUMBER} for the number")
    count = at["count"].value
    if count is None and NUMBER in name:
        raise at["name"].wrong(repr(name), f"{NUMBER} only beside a count")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MAX_CLUSTERS):
        raise at["count"].wrong(repr(count), f"a number from 1 to {MAX_CLUSTERS}")
    entry = {key: value for key, value in at.map().items() if key in WORLD}
    given = at if entry.get("nodes") else Field(at.file, at.where, entry | {"nodes": NODES})
    world = world_at(given, dump(entry), objects)
    labels, annotations = dict(at["labels"].pairs()), dict(at["annotations"].pairs())
    return ClusterGroup(place, name, world, count, labels, annotations, _away(at["away"]))
