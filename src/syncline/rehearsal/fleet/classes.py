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
_RUN = re.compile(r"[a-zA-Z0-9-]+")


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
    names: tuple[str, ...]
    played: Pulled


def without_name(text: str, name: str) -> str:
    """Return a text without the name of a cluster, where it stands as a word or as a part between hyphens."""
    return _word(name).sub(NAMELESS, text)


def with_name(text: str, name: str) -> str:
    return text.replace(NAMELESS, name)


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-zA-Z0-9]){re.escape(name)}(?![a-zA-Z0-9])")


def classes_of(
    clusters: Sequence[tuple[Pulled, Sequence[str]]], mentions: Sequence[Mentions]
) -> tuple[EqualClusters, ...]:
    """Return the classes in the order of their first members. ``clusters``: each with the names of all that are alike,
    itself among them; ``mentions``: of the repository after and before the commit."""
    found: dict[str, tuple[Pulled, list[str]]] = {}
    worlds: dict[int, str] = {}
    for one, all_alike in clusters:
        world = worlds.get(id(one.world))
        if world is None:
            world = worlds[id(one.world)] = _world(one.world)
        pulled = without_name(json.dumps([_bare(one.before), _bare(one.after)], sort_keys=True), one.name)
        key = digest([world, pulled, *(each.of(one.name) for each in mentions)])
        found.setdefault(key, (one, []))[1].extend(all_alike)
    return tuple(EqualClusters(key, tuple(names), played) for key, (played, names) in found.items())


def sample(groups: Iterable[Sequence[str]], seed: int, count: int = SAMPLE) -> tuple[str, ...]:
    """Draw clusters of groups that are alike, but for the first of each, which is played anyway; by name."""
    others = [name for each in groups for name in each[1:]]
    draws = Entropy(f"sample/{seed}")
    return tuple(sorted(others.pop(draws.randrange(len(others))) for _ in range(min(count, len(others)))))


def _bare(manifests: Iterable[Obj]) -> list[Obj]:
    """Return manifests without the name of their release, which is a hash of the cluster's name, too."""
    return [_unstamped(one) if RELEASE in annotations_of(one) else one for one in manifests]


def _unstamped(obj: Obj) -> Obj:
    annotations = {key: value for key, value in annotations_of(obj).items() if key != RELEASE}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _world(world: GivenWorld) -> str:
    durations = sorted((name, asdict(each)) for name, each in world.durations.items())
    shape = [asdict(each) for each in world.groups], world.machine_config, world.rights, world.load_balancers
    objects = {path: digest(data.hex()) for path, data in world.objects.content.items()}
    return digest([shape, durations, objects, world.namespaces])


class Mentions:
    """What a repository says of clusters: the files whose path or text has their names."""

    def __init__(self, files: Files, names: Iterable[str]) -> None:
        known = frozenset(names)
        longest = max((name.count("-") + 1 for name in known), default=0)
        self._texts: dict[str, list[tuple[str, str]]] = {}
        self._digests: dict[str, str] = {}
        for path, data in sorted(files.content.items()):
            text = data.decode("utf-8", "replace")
            for name in known & _names_in(f"{path}\n{text}", longest):
                self._texts.setdefault(name, []).append((path, text))

    def of(self, name: str) -> str:
        """Return a hash of what is said of a cluster, without its name."""
        if name not in self._digests:
            said = self._texts.get(name, ())
            found = [[without_name(path, name), without_name(text, name)] for path, text in said]
            self._digests[name] = digest(sorted(found))
        return self._digests[name]


def _names_in(text: str, longest: int) -> set[str]:
    """Return all that may be a name: words of at most so many parts between hyphens."""
    found: set[str] = set()
    for run in set(_RUN.findall(text)):
        parts = run.split("-")
        for begin in range(len(parts)):
            for end in range(begin + 1, min(begin + longest, len(parts)) + 1):
                found.add("-".join(parts[begin:end]))
    return found


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def by_member(classes: Iterable[EqualClusters]) -> Mapping[str, EqualClusters]:
    """Return the class of each cluster by name."""
    return {name: each for each in classes for name in each.names}
