"""The guard on mass deletion: a sync that would delete much of an application needs confirmation; pure.

It is on for automated syncs, and for manual ones if ``syncline.dev/deletion-guard`` is set. The confirmation contains a
hash of the objects to delete, so it is valid for these only (DECISIONS 6).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from syncline.kube.objects import Obj, annotations_of

GUARD = "syncline.dev/deletion-guard"
"""Annotation of an Application: ``off`` or ``COUNT SHARE%``: at least so many deletions, and a larger share."""
CONFIRM = "syncline.dev/confirm-deletions"
"""Annotation of an Application: the hash from the refusal."""
LEAST, SHARE = 4, 50
"""Smallest number of deletions that count as mass deletion, and the percentage of objects that they must exceed."""
SETTING = re.compile(r"([0-9]{1,9})\s+([0-9]{1,3})%", re.ASCII)


def guard_asked(app: Obj) -> bool:
    """Return whether the annotation turns the guard on for manual syncs too."""
    return annotations_of(app).get(GUARD, "off") != "off"


def mass_deletion(app: Obj, rows: Sequence[Obj]) -> str:
    """Return why these deletions need confirmation; empty if they do not. ``rows``: as in ``status.resources``."""
    setting = annotations_of(app).get(GUARD, "")
    if setting == "off":
        return ""
    found = SETTING.fullmatch(setting.strip())
    least, share = (int(found[1]), int(found[2])) if found else (LEAST, SHARE)
    going = sorted(_named(row) for row in rows if row.get("requiresPruning"))
    if len(going) < max(least, 1) or len(going) * 100 <= len(rows) * share:
        return ""
    digest = hashlib.sha256("\n".join(going).encode()).hexdigest()[:12]
    if annotations_of(app).get(CONFIRM) == digest:
        return ""
    return (
        f"{len(going)} of {len(rows)} objects would be deleted ({', '.join(going[:3])}, ...); "
        f"if that is meant, confirm it with the annotation {CONFIRM}: {digest}"
    )


def _named(row: Obj) -> str:
    return "/".join(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name"))
