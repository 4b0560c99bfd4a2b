"""The order of API versions."""

from __future__ import annotations

_STAGES = {"": 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sort key of Kubernetes' version priority: GA before beta before alpha, higher numbers first, others by name."""
    body = version[1:] if version.startswith("v") else ""
    digits = len(body) - len(body.lstrip("0123456789"))
    major, rest = body[:digits], body[digits:]
    stage = rest.rstrip("0123456789")
    minor = rest[len(stage) :]
    if not major or stage not in _STAGES or bool(stage) != bool(minor):
        return (3, 0, 0, version)
    return (_STAGES[stage], -int(major), -int(minor or 0), "")
