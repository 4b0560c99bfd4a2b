"""What people write for the order over clusters, on Applications and on ManagedClusters; pure.

None of it travels: a gate is held on the hub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from syncline.argo.dependencies import DEPENDS_ON
from syncline.kube.objects import Obj, annotations_of, labels_of
from syncline.kube.text.durations import DurationError, parse_duration

CLUSTER_WAVE: Final = "syncline.dev/cluster-wave"
"""Annotation of an Application, label of a ManagedCluster: an integer, smaller ones first."""
HEALTHY_FOR: Final = "syncline.dev/healthy-for"
"""Annotation of an Application: how long it must be healthy before later waves begin."""
WINDOWS: Final = "syncline.dev/maintenance-windows"
"""Annotation of a ManagedCluster or a ManagedClusterSet: when its clusters may be changed."""
PIN_REVISIONS: Final = "syncline.dev/pin-revisions"
"""Annotation of an Application: ``false`` leaves it to each cluster what a targetRevision is."""
STRIPPED: Final = (CLUSTER_WAVE, HEALTHY_FOR, PIN_REVISIONS, DEPENDS_ON)
LONGEST: Final = timedelta(hours=720)
_WAVE: Final = re.compile(r"[+-]?[0-9]{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Asked:
    """What an Application asks of the order. ``wave`` None: it does not say. ``problem``: what cannot be read; nothing
    begins until it is changed, because a gate that is not understood is not left out."""

    wave: int | None = None
    healthy_for: timedelta = timedelta()
    pins: bool = True
    problem: str = ""


def wave_in(text: str) -> int | None:
    """Return a wave: an integer of at most six digits. None: it is none."""
    return int(text) if _WAVE.fullmatch(text.strip()) else None


def asked_of(app: Obj) -> Asked:
    """Read the annotations of an Application."""
    given = annotations_of(app)
    wave, healthy, problem = given.get(CLUSTER_WAVE, "").strip(), timedelta(), ""
    number = wave_in(wave) if wave else None
    if wave and number is None:
        problem = f"annotation {CLUSTER_WAVE} is {wave[:80]!r}; allowed is an integer of at most six digits"
    if text := given.get(HEALTHY_FOR, "").strip():
        try:
            healthy = parse_duration(text)
        except DurationError as error:
            problem = f"annotation {HEALTHY_FOR}: {error}; allowed is a duration such as 10m, at most 720h"
        if not timedelta() <= healthy <= LONGEST:
            problem = f"annotation {HEALTHY_FOR} is {text[:80]!r}; allowed is a duration from 0s to 720h"
    return Asked(number, healthy, given.get(PIN_REVISIONS, "").strip().lower() != "false", problem)


def wave_of_cluster(cluster: Obj | None) -> tuple[int | None, str]:
    """Return the wave that a ManagedCluster's label gives, and why it cannot be read."""
    text = labels_of(cluster or {}).get(CLUSTER_WAVE, "").strip()
    number = wave_in(text) if text else None
    if text and number is None:
        return None, f"label {CLUSTER_WAVE} of the ManagedCluster is {text[:80]!r}; allowed is an integer"
    return number, ""


def asks_for_order(app: Obj) -> bool:
    """Return whether an Application puts its group in order."""
    given = annotations_of(app)
    return any(key in given for key in (CLUSTER_WAVE, HEALTHY_FOR, DEPENDS_ON))
