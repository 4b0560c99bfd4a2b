"""What ``argocd-cmd-params-cm`` says to the controllers, as far as they read it: where Applications may live, who says
what differs, and whether dry sources are hydrated.

Upstream hands these settings to its processes when they start; here a change of the ConfigMap counts at once. A flag of
the process wins. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.text.glob import ListStyle, list_matches

__all__ = ["PARAMETERS_MAP", "Parameters", "enables_namespace", "parse_parameters", "patterns_of"]

PARAMETERS_MAP = "argocd-cmd-params-cm"


@dataclass(frozen=True, slots=True)
class Parameters:
    """``application_namespaces``: names, globs and ``/expressions/`` of the namespaces beside the control namespace.
    ``server_side_diff``: the API server is asked what differs, unless an Application says otherwise."""

    application_namespaces: tuple[str, ...] = ()
    server_side_diff: bool = False
    hydrator: bool = False
    """Whether dry sources are hydrated (``hydrator.enabled``)."""


def parse_parameters(data: Mapping[str, str]) -> Parameters:
    """``data`` of the ConfigMap; never raises."""
    return Parameters(
        application_namespaces=patterns_of(str(data.get("application.namespaces") or "")),
        server_side_diff=str(data.get("controller.diff.server.side")).lower() in ("true", "t", "1"),
        hydrator=str(data.get("hydrator.enabled") or "").strip().lower() in ("true", "1", "t"),
    )


def patterns_of(text: str) -> tuple[str, ...]:
    """The entries of a list by comma, as upstream cuts it."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def enables_namespace(namespace: str, control_namespace: str, patterns: tuple[str, ...]) -> bool:
    """Whether Applications of a namespace are worked on (upstream: ``IsNamespaceEnabled``)."""
    return namespace == control_namespace or list_matches(patterns, namespace, ListStyle.REGEXP)
