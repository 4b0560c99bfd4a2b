"""Drawn values of cluster groups, rendered by Syncline and by Helm: :func:`compare`.

A draw takes the values of one group and changes one to four places: another value of the same place in any group, a
word from a list of odd ones, a key that another group has there, or nothing at all. Equal seeds draw equal values.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from syncline.kube.objects import Obj, copied

ODD: tuple[Any, ...] = (
    *(None, "", True, False, 0, 1, 12, 4.16, -3, 1_000_000, 2.5, 1e21, {}, [], ["a"], {"a": "b"}, {"a": 1, "b": None}),
    *(
        "4.16",
        "12",
        "true",
        "yes",
        "n",
        "1e3",
        "0755",
        "~",
        "null",
        "2001-01-01",
        "1:30",
        "0x1F",
        "Manual",
        "automatic",
    ),
    *(
        "a: b",
        "# c",
        "a #b",
        "*",
        "&x",
        "'q'",
        '"dq"',
        "a\nb",
        "-",
        ": v",
        "[1",
        "a'b",
        'a"b',
        "\\",
        "@x",
        "%p",
        " lead",
    ),
    *("{{ .Values.global.pattern }}", "{{ .Values.nope }}", "none", "DeleteSpoke", "DeleteChildApps", "plumbing"),
    *(
        "$patternref/x.yaml",
        "/a/b.yaml",
        "vp-gitops",
        "kubernetes",
        "AWS",
        "Ünïcode",
        "with space",
        " lead",
        "trail ",
        "automatic",
    ),
)
NAMED = ("applications", "subscriptions", "managedClusterGroups", "namespaces", "clusterPools", "clusterDeployments")
"""Maps whose keys are names: one entry stands for all."""
Place = tuple[Any, ...]
Render = Callable[[Obj], Sequence[Obj] | None]
"""None: refused."""


def compare(
    groups: Sequence[Obj], ours: Render, theirs: Render, *, count: int, seed: int
) -> tuple[Counter[str], list[str]]:
    """Return how often both agree, and what was changed where they do not."""
    chance, known = random.Random(seed), _known(groups)
    counts: Counter[str] = Counter()
    different: list[str] = []
    for _ in range(count):
        values, changes = _drawn(chance, groups, known)
        mine, helms = ours(copied(values)), theirs(values)
        if mine is None and helms is None:
            counts["both refuse"] += 1
        elif mine == helms:
            counts["equal"] += 1
        else:
            counts["different"] += 1
            different.append("; ".join(changes))
    return counts, different


def _places(value: Any, at: Place = ()) -> Iterator[Place]:
    yield at
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield from _places(one, (*at, key))


def _at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def _kind(place: Place) -> Place:
    """Return a place with one name for all entries of a list or of a map of names."""
    return tuple(
        "*" if isinstance(key, int) or (at and place[at - 1] in NAMED) else key for at, key in enumerate(place)
    )


def _known(groups: Sequence[Obj]) -> Mapping[Place, list[Any]]:
    found: dict[Place, list[Any]] = defaultdict(list)
    for one in groups:
        for place in _places(one):
            found[_kind(place)].append(_at(one, place))
    return found


def _drawn(chance: random.Random, groups: Sequence[Obj], known: Mapping[Place, list[Any]]) -> tuple[Obj, list[str]]:
    values: Obj = copied(chance.choice(groups))
    changes: list[str] = []
    for _ in range(chance.randint(1, 4)):
        places = [one for one in _places(values) if one]
        if not places:
            break
        place = chance.choice(places)
        holder, key, way = _at(values, place[:-1]), place[-1], chance.random()
        if way < 0.1:
            del holder[key]
        elif way < 0.5:
            holder[key] = copied(chance.choice(ODD))
        elif way < 0.75:
            holder[key] = copied(chance.choice(known[_kind(place)] or ODD))
        elif isinstance(holder, dict):
            inside = [one for one in known if one[:-1] == _kind(place[:-1]) and one]
            key = chance.choice(inside)[-1] if inside else key
            holder[key] = copied(chance.choice(known[_kind((*place[:-1], key))] or ODD))
        now = holder.get(key) if isinstance(holder, dict) else holder
        changes.append(f"{'/'.join(map(str, (*place[:-1], key)))}: {str(now)[:60]!r}")
    return values, changes
