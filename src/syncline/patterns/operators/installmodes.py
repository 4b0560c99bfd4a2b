"""Install modes: which sets of target namespaces an operator supports (``InstallModeSet.Supports``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from syncline.kube.objects import Obj

OWN, SINGLE, MULTI, ALL = "OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"
NO_NAMESPACE = "operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces"
ALL_AND_MORE = "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"


class DuplicateMode(ValueError):
    """An install mode is listed twice."""


def mode_set(modes: Sequence[Obj]) -> Mapping[str, bool]:
    """Return whether each listed mode is supported. Raises :class:`DuplicateMode`."""
    found: dict[str, bool] = {}
    for mode in modes:
        kind = str(mode.get("type") or "")
        if kind in found:
            raise DuplicateMode(f"InstallMode list contains duplicates, cannot make set: {_printed(modes)}")
        found[kind] = bool(mode.get("supported"))
    return found


def _printed(modes: Sequence[Obj]) -> str:
    """Print the list as Go prints it."""
    return "[" + " ".join(f"{{{one.get('type', '')} {str(bool(one.get('supported'))).lower()}}}" for one in modes) + "]"


def unsupported(modes: Mapping[str, Any], own: str, targets: Sequence[str]) -> str:
    """Return why an operator in namespace ``own`` cannot watch ``targets`` ("" among them: all namespaces); "" if it
    can."""
    if not targets:
        return NO_NAMESPACE
    if len(targets) == 1:
        mode, what = {own: (OWN, "own namespace"), "": (ALL, "all namespaces")}.get(
            targets[0], (SINGLE, "one namespace")
        )
        return "" if modes.get(mode) else _lacking(mode, what)
    if not modes.get(MULTI):
        return _lacking(MULTI, f"{len(targets)} namespaces")
    for target in targets:
        if target == own and not modes.get(OWN):
            return _lacking(OWN, "own namespace")
        if not target:
            return ALL_AND_MORE
    return ""


def _lacking(mode: str, what: str) -> str:
    return f"{mode} InstallModeType not supported, cannot configure to watch {what}"
