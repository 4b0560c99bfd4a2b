"""Completion indexes of pods, and how a status writes sets of them."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.cluster.validation.engine.integers import natural
from syncline.kube.objects import Obj, annotations_of

__all__ = ["COMPLETION_INDEX", "format_indexes", "index_of", "parse_indexes"]

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Obj, completions: int | None = None) -> int | None:
    """The index of a pod; None without one, and for one that is not below ``completions``."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    index = natural(text)
    return index if index is not None and (completions is None or index < completions) else None


def parse_indexes(text: str, completions: int) -> set[int]:
    """``0-2,4`` → {0, 1, 2, 4}; unreadable parts, and what is not below ``completions``, are left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = natural(first), natural(last or first)
        if low is not None and high is not None:
            found |= set(range(low, min(high + 1, completions)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """{0, 1, 3, 4, 5} → ``0,1,3-5``: a run is written as a range from three on, as Kubernetes writes them."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for at, index in enumerate(ordered):
        if at + 1 == len(ordered) or ordered[at + 1] != index + 1:
            run = ordered[start : at + 1]
            parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(each) for each in run]
            start = at + 1
    return ",".join(parts)
