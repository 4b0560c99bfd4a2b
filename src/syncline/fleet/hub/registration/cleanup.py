"""The order in which what a deleted cluster has in its namespace goes; pure.

Rules: ``pkg/registration/hub/gc`` of upstream (reference ocm-pull-model §1.9).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from syncline.fleet.conditions import condition
from syncline.kube.objects import Obj, annotations_of, finalizers

PRIORITY: Final = "open-cluster-management.io/cleanup-priority"
LAST: Final = 100
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def priority_of(obj: Obj) -> int:
    """Return when an object goes, 0 first; also without the annotation, or with one that is not in 0-100."""
    text = annotations_of(obj).get(PRIORITY, "")
    number = int(text) if _NUMBER.fullmatch(text) else 0
    return number if 0 <= number <= LAST else 0


def next_to_go(objects: Sequence[Obj]) -> list[Obj]:
    """Return the objects of the lowest priority that is left; the others stay until these are gone."""
    first = min(map(priority_of, objects), default=0)
    return [one for one in objects if priority_of(one) == first]


def remaining(resource: str, objects: Sequence[Obj]) -> Obj:
    """Return the condition of a cluster that waits for objects; ``resource``: their plural."""
    held = sum(bool(finalizers(one)) for one in objects)
    counts = f"the remaining count is {len(objects)}, the finalizer pending count is {held}"
    text = f"The resource {resource} is remaning, {counts}"  # upstream's spelling
    return condition("Deleting", "False", "ResourceRemaining", text)


NOTHING_LEFT: Final = condition("Deleting", "True", "NoResource", "No cleaned resource in cluster ns.")
"""The condition of a deleted cluster in whose namespace nothing is left."""
