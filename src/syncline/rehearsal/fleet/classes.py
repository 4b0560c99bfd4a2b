"""Clusters that are equal up to their names; pure. Entry point: :func:`classes_of`.

Two clusters are equal if their worlds, what they get of the hub before and after the commit, and what the repository
says of them are the same texts once each one's own name is taken out. What a template makes of a name in another way
(a part of it, its length) stays in the text, and so keeps clusters apart.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from syncline.argo.application import RELEASE
from syncline.base.entropy import Entropy
from syncline.kube.objects import Obj, annotations_of
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import GivenWorld

NAMELESS = "\0"
"""Stands for the name of the cluster; no text of YAML has it."""
SAMPLE = 5
"""Clusters beside the first of each class that are played singly, and compared."""
LENGTH = 16


@dataclass(frozen=True)
class Pulled:
    """A cluster before the commit arrives. ``before``, ``after``: manifests that it gets of the hub then."""

    name: str
    world: GivenWorld
    after: tuple[Obj, ...]
    before: tuple[Obj, ...] = ()


@dataclass(frozen=True)
class EqualClusters:
    """Clusters of one hash; the first one is played."""

    key: str
    members: tuple[Pulled, ...]

    @property
    def played(self) -> Pulled:
        return self.members[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.members)


def without_name(text: str, name: str) -> str:
    """Return a text without the name of a cluster, where it stands as a word or as a part between hyphens."""
    return _word(name).sub(NAMELESS, text)


def with_name(text: str, name: str) -> str:
    return text.replace(NAMELESS, name)


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-zA-Z0-9]){re.escape(name)}(?![a-zA-Z0-9])")


def classes_of(clusters: Sequence[Pulled], files: Files, before: Files | None) -> tuple[EqualClusters, ...]:
    """Return the classes in the order of their first members."""
    found: dict[str, list[Pulled]] = {}
    worlds: dict[int, str] = {}
    said = [_Mentions(each, [one.name for one in clusters]) for each in (files, before) if each is not None]
    for one in clusters:
        world = worlds.get(id(one.world))
        if world is None:
            world = worlds[id(one.world)] = _world(one.world)
        pulled = without_name(json.dumps([_bare(one.before), _bare(one.after)], sort_keys=True), one.name)
        mentioned = [each.of(one.name) for each in said]
        found.setdefault(_digest([world, pulled, *mentioned]), []).append(one)
    return tuple(EqualClusters(key, tuple(members)) for key, members in found.items())


def sample(classes: Iterable[EqualClusters], seed: int, count: int = SAMPLE) -> tuple[Pulled, ...]:
    """Draw clusters that are not played anyway, in the order of their names."""
    others = [one for each in classes for one in each.members[1:]]
    draws = Entropy(f"sample/{seed}")
    chosen = [others.pop(draws.randrange(len(others))) for _ in range(min(count, len(others)))]
    return tuple(sorted(chosen, key=lambda one: one.name))


def _bare(manifests: Iterable[Obj]) -> list[Obj]:
    """Return manifests without the name of their release, which is a hash of the cluster's name, too."""
    return [_unstamped(one) if RELEASE in annotations_of(one) else one for one in manifests]


def _unstamped(obj: Obj) -> Obj:
    annotations = {key: value for key, value in annotations_of(obj).items() if key != RELEASE}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _world(world: GivenWorld) -> str:
    durations = sorted((name, asdict(each)) for name, each in world.durations.items())
    shape = [asdict(each) for each in world.groups], world.machine_config, world.rights, world.load_balancers
    objects = {path: _digest(data.hex()) for path, data in world.objects.content.items()}
    return _digest([shape, durations, objects, world.namespaces])


class _Mentions:
    """What a repository says of clusters: the files whose path or text has their names."""

    def __init__(self, files: Files, names: Sequence[str]) -> None:
        self._texts: dict[str, list[tuple[str, str]]] = {}
        if not names:
            return
        word = re.compile(r"[a-zA-Z0-9]+(?:[-.][a-zA-Z0-9]+)*")
        parts = {name: set(re.split("-", name)) for name in names}
        for path, data in sorted(files.content.items()):
            text = data.decode("utf-8", "replace")
            tokens = {part for each in word.findall(f"{path}\n{text}") for part in re.split("[-.]", each)}
            for name in names:
                if parts[name] <= tokens and _word(name).search(f"{path}\n{text}"):
                    self._texts.setdefault(name, []).append((path, text))

    def of(self, name: str) -> str:
        found = [[without_name(path, name), without_name(text, name)] for path, text in self._texts.get(name, ())]
        return _digest(sorted(found))


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def by_member(classes: Iterable[EqualClusters]) -> Mapping[str, EqualClusters]:
    """Return the class of each cluster by name."""
    return {name: each for each in classes for name in each.names}
