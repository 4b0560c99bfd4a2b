"""Reads a fault that strikes at a time: :func:`mishap`. Errors name the path, what was found and what is allowed."""

from __future__ import annotations

import re
from datetime import timedelta

from syncline.rehearsal.fields import Field
from syncline.rehearsal.mishaps import Kind, Mishap

MAX_TIMES, MAX_TARGET = 100, 300
MAX_TAKES = timedelta(days=1)
KEYS = {
    Kind.SLOW_PULL: ("takes",),
    Kind.HOOK_FAILS: ("times",),
    Kind.HOOK_HANGS: ("times",),
    Kind.FAILED_BOOT: ("times",),
}
"""What a kind needs besides its target and ``for``."""
SPACED = (Kind.HOOK_FAILS, Kind.HOOK_HANGS, Kind.WEBHOOK_DOWN)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PATTERN = re.compile(r"[-a-z0-9.*?]{1,253}")


def mishap(at: Field) -> tuple[Mishap, timedelta | None]:
    """Return the fault and how long it lasts; None: to the end. Raises ScenarioError."""
    kinds = [str(kind) for kind in Kind if str(kind) in at.map()]
    if len(kinds) != 1:
        raise at.wrong(", ".join(map(str, at.map())) or "nothing", f"one of {', '.join(Kind)}")
    kind = Kind(kinds[0])
    at.known(str(kind), "for", *KEYS.get(kind, ()))
    times = at["times"].value if at["times"].value is not None else 1
    if type(times) is not int or not 1 <= times <= MAX_TIMES:
        raise at["times"].wrong(repr(times), f"a number from 1 to {MAX_TIMES}")
    takes = at["takes"].duration(timedelta(minutes=10))
    if takes > MAX_TAKES:
        raise at["takes"].wrong(repr(at["takes"].value), "at most 24h")
    lasts = None if at["for"].value is None else at["for"].duration(timedelta(0))
    return Mishap(kind, _target(kind, at[str(kind)]), takes.total_seconds(), times), lasts


def _target(kind: Kind, at: Field) -> str:
    text = at.text()
    if not isinstance(at.value, str) or len(text) > MAX_TARGET:
        raise at.wrong(repr(at.value), f"a text of at most {MAX_TARGET} characters")
    if kind is Kind.SLOW_PULL:
        return text
    if kind not in SPACED:
        if not _NAME.fullmatch(text):
            raise at.wrong(repr(text), "the name of a node" + (", gitops or machine-config" * (kind is Kind.PARTITION)))
        return text
    parts = text.split("/")
    allowed = _NAME if kind is Kind.WEBHOOK_DOWN else _PATTERN
    if len(parts) != 2 or not all(allowed.fullmatch(part) for part in parts):
        what = "Service" if kind is Kind.WEBHOOK_DOWN else "Job; its name may be a pattern such as shop/migrate-*"
        raise at.wrong(repr(text), f"NAMESPACE/NAME of a {what}")
    return text
