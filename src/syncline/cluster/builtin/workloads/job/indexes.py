"""Completion indexes of pods, and their text form in a status."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.cluster.validation.engine.integers import natural
from syncline.kube.objects import Obj, annotations_of

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Obj, completions: int | None = None) -> int | None:
    """Return the index of a pod; None if it has none below ``completions``."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    index = natural(text)
    return index if index is not None and (completions is None or index < completions) else None


def parse_indexes(text: str, completions: int) -> set[int]:
    """Parse ``0-2,4`` → {0, 1, 2, 4}; malformed parts and indexes from ``completions`` on are skipped."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = natural(first), natural(last or first)
        if low is not None and high is not None:
            found |= set(range(low, min(high + 1, completions)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Format {0, 1, 3, 4, 5} → ``0,1,3-5``: ranges of three or more, as Kubernetes writes them."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for at, index in enumerate(ordered):
        if at + 1 == len(ordered) or ordered[at + 1] != index + 1:
            run = ordered[start : at + 1]
            parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(each) for each in run]
            start = at + 1
    return ",".join(parts)
