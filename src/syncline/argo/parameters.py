"""Parses ``argocd-cmd-params-cm``: enabled namespaces, server-side diff, hydrator.

Upstream passes these settings to its processes at start; here a change of the ConfigMap takes effect at once. A flag of
the process wins. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.text.glob import ListStyle, list_matches

PARAMETERS_MAP = "argocd-cmd-params-cm"


@dataclass(frozen=True, slots=True)
class Parameters:
    """``application_namespaces``: names, globs and ``/expressions/`` of enabled namespaces beside the control
    namespace. ``server_side_diff``: the default for Applications without the compare option."""

    application_namespaces: tuple[str, ...] = ()
    server_side_diff: bool = False
    hydrator: bool = False
    """Whether dry sources are hydrated (``hydrator.enabled``)."""


def parse_parameters(data: Mapping[str, str]) -> Parameters:
    """Parse ``data`` of the ConfigMap; never raises."""
    return Parameters(
        application_namespaces=patterns_of(str(data.get("application.namespaces") or "")),
        server_side_diff=str(data.get("controller.diff.server.side")).lower() in ("true", "t", "1"),
        hydrator=str(data.get("hydrator.enabled") or "").strip().lower() in ("true", "1", "t"),
    )


def patterns_of(text: str) -> tuple[str, ...]:
    """Split a list at commas, as upstream does."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def enables_namespace(namespace: str, control_namespace: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a namespace is enabled for Applications (upstream: ``IsNamespaceEnabled``)."""
    return namespace == control_namespace or list_matches(patterns, namespace, ListStyle.REGEXP)
