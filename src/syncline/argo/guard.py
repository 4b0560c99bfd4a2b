"""The guard on mass deletion: what would delete much of what exists needs confirmation; pure.

For an Application it is on for automated syncs, and for manual ones if ``syncline.dev/deletion-guard`` is set; for an
ApplicationSet it is on. The confirmation contains a hash of what would go, so it is valid for that only (DECISIONS 6).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj, annotations_of

GUARD = "syncline.dev/deletion-guard"
"""Annotation of an Application or ApplicationSet: ``off`` or ``COUNT SHARE%``: at least so many deletions, and a larger
share."""
CONFIRM = "syncline.dev/confirm-deletions"
"""Annotation beside it: the hash from the refusal."""
LEAST, SHARE = 4, 50
"""Smallest number of deletions that count as mass deletion, and the percentage of objects that they must exceed."""
SETTING = re.compile(r"([0-9]{1,9})\s+([0-9]{1,3})%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Guarded:
    """A mass deletion: how many of how many, and the hash that confirms it."""

    going: int
    of: int
    digest: str
    confirmed: bool
    """The annotation :data:`CONFIRM` of the owner names the hash."""

    @property
    def advice(self) -> str:
        return f"if that is meant, confirm it with the annotation {CONFIRM}: {self.digest}"


def guard_asked(app: Obj) -> bool:
    """Return whether the annotation turns the guard on for manual syncs too."""
    return annotations_of(app).get(GUARD, "off") != "off"


def guarded(owner: Obj, going: Iterable[str], count: int) -> Guarded | None:
    """Return the mass deletion if so many of ``count`` objects go that it needs confirmation, else None. ``going``:
    identities, ``owner``: the object with the annotations."""
    setting = annotations_of(owner).get(GUARD, "")
    if setting == "off":
        return None
    found = SETTING.fullmatch(setting.strip())
    least, share = (int(found[1]), int(found[2])) if found else (LEAST, SHARE)
    named = sorted(going)
    if len(named) < max(least, 1) or len(named) * 100 <= count * share:
        return None
    digest = hashlib.sha256("\n".join(named).encode()).hexdigest()[:12]
    return Guarded(len(named), count, digest, annotations_of(owner).get(CONFIRM) == digest)


def mass_deletion(app: Obj, rows: Sequence[Obj]) -> str:
    """Return why these deletions need confirmation; empty if they do not. ``rows``: as in ``status.resources``."""
    going = sorted(_named(row) for row in rows if row.get("requiresPruning"))
    found = guarded(app, going, len(rows))
    if found is None or found.confirmed:
        return ""
    return f"{found.going} of {found.of} objects would be deleted ({', '.join(going[:3])}, ...); {found.advice}"


def _named(row: Obj) -> str:
    return "/".join(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name"))
