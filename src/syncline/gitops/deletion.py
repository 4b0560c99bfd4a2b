"""The order in which the objects of an application are deleted with it.

Called by the deletion of an Application with its live objects. The highest sync wave goes first; the next round is due
when the former is gone. Pure. Rule: Argo CD ``controller/sort_delete.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncline.apply.annotations import wave
from syncline.kube.objects import Obj, ref_of

__all__ = ["deletion_rounds"]


def deletion_rounds(objects: Iterable[Obj]) -> list[tuple[Obj, ...]]:
    """All rounds, each sorted by reference; empty if there is nothing to delete."""
    rounds: dict[int, list[Obj]] = {}
    for obj in objects:
        rounds.setdefault(wave(obj), []).append(obj)
    return [tuple(sorted(rounds[number], key=ref_of)) for number in sorted(rounds, reverse=True)]
