"""What a person chose, frozen: the settings of a served cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

__all__ = ["ClusterSettings", "RunCommands"]


class RunCommands(StrEnum):
    """Whether containers' commands run as local processes (DECISION: off unless asked)."""

    OFF = "off"
    SANDBOXED = "sandboxed"
    UNSANDBOXED = "unsandboxed"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One embedded cluster."""

    data: Path | None = None
    """Data directory; None keeps everything in memory."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free port."""
    tls: bool = True
    nodes: int = 0
    """Simulated nodes that are registered at the start."""
    zones: tuple[str, ...] = ()
    """Zones of those nodes, given out in turn; empty: no zones."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that each of those nodes gets when it is registered."""
    controllers: tuple[str, ...] | None = None
    """Names of the built-in controllers to run; None is all, empty is none."""
    simulated_storage: bool = False
    """Whether there is a default StorageClass whose volumes are simulated."""
    run_commands: RunCommands = RunCommands.OFF
    audit_log: Path | None = None
    """File that takes a line for each request."""
