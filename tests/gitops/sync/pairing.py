"""Pairs manifests and live objects in one step, where the observation of an application arranges its targets once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from syncline.gitops.comparison.pairs import arrange, pair_arranged
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.model import Pair
from syncline.kube.objects import Obj, ObjectRef


class Paired(NamedTuple):
    pairs: tuple[Pair, ...]
    hooks: tuple[Obj, ...]


def pair_objects(targets: Iterable[Obj], live: Mapping[ObjectRef, Obj], namespace: str, kinds: KindTable) -> Paired:
    arranged = arrange(targets, namespace, kinds)
    return Paired(pair_arranged(arranged, live, {}), arranged.hooks)
