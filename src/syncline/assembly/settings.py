"""Frozen settings of a served cluster, and where traces are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from syncline.assembly.embedded.rotation import KEEP_ALL, Rotation
from syncline.base.secret import Secret
from syncline.telemetry.otlp import TraceSettings

__all__ = [
    "DATABASE",
    "KEYS",
    "MACHINES",
    "SCRATCH",
    "HUB_WEBHOOK_SERVICE",
    "ClusterSettings",
    "HubWebhookSettings",
    "RunCommands",
    "SettingError",
    "TraceSettings",
    "trace_settings",
]


DATABASE = "cluster.db"
KEYS = "keys"
MACHINES = "machines"
SCRATCH = "scratch"
"""Directory below the data directory for files that can be fetched again."""


class RunCommands(StrEnum):
    """Whether containers' commands run as local processes (DECISION: off by default)."""

    OFF = "off"
    SANDBOXED = "sandboxed"
    UNSANDBOXED = "unsandboxed"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of one embedded cluster."""

    data: Path | None = None
    """Data directory; None: memory only."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: a free port."""
    tls: bool = True
    allowed_hosts: tuple[str, ...] = ()
    """Further host names of listeners without TLS or authentication."""
    nodes: int = 0
    """Simulated nodes, registered at the start."""
    zones: tuple[str, ...] = ()
    """Zones of those nodes, assigned in turn; empty: none."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that each of those nodes gets at registration."""
    controllers: tuple[str, ...] | None = None
    """Names of the built-in controllers to run; None: all, empty: none."""
    simulated_storage: bool = False
    """Whether there is a default StorageClass with simulated volumes."""
    run_commands: RunCommands = RunCommands.OFF
    audit_log: Path | None = None
    """File that gets a line per request."""
    audit_policy: Path | None = None
    """Policy of audit.k8s.io/v1; None: metadata of all requests."""
    audit_rotation: Rotation = KEEP_ALL
    """When the file is rotated, and when old files are deleted."""
    encryption: Path | None = None
    """Key file that encrypts Secrets, or the kinds it names, at rest (``cluster.encryption``)."""
    max_requests_inflight: int = 400
    """Concurrent reading requests; with the next, the seats that priority levels share (Kubernetes' defaults)."""
    max_mutating_requests_inflight: int = 200


@dataclass(frozen=True, slots=True)
class HubWebhookSettings:
    """Where the webhooks of a hub listen, and where its API server finds them.

    ``url``: ``https://HOST:PORT``; empty: the Service :data:`HUB_WEBHOOK_SERVICE`, port 443.
    """

    host: str
    port: int
    url: str = ""


HUB_WEBHOOK_SERVICE = ("syncline-hub-webhook", "open-cluster-management-hub", 443)
"""Name, namespace and port of the Service in ``deploy/hub.yaml``."""


class SettingError(ValueError):
    """An invalid setting: the value found and a valid one, in one sentence."""


TRACES_PATH = "/v1/traces"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")


def trace_settings(option: str | None, environment: Mapping[str, str]) -> TraceSettings | None:
    """Read ``--otlp-endpoint``, else OpenTelemetry's variables; None: no traces. Raises :class:`SettingError`.

    By its specification, ``/v1/traces`` is appended to a general endpoint, not to one for traces alone; an empty
    variable counts as unset, and ``OTEL_SDK_DISABLED=true`` disables the variables.
    """
    if option is not None:
        url = _collector("--otlp-endpoint", option, append=not option.rstrip("/").endswith(TRACES_PATH))
    elif environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    elif environment.get(TRACES_ENDPOINT):
        url = _collector(TRACES_ENDPOINT, environment[TRACES_ENDPOINT], append=False)
    elif environment.get(ENDPOINT):
        url = _collector(ENDPOINT, environment[ENDPOINT], append=True)
    else:
        return None
    text = next((environment[name] for name in HEADERS if environment.get(name)), "")
    return TraceSettings(url, _headers(text), environment.get("OTEL_SERVICE_NAME") or "syncline")


def _collector(name: str, text: str, *, append: bool) -> str:
    """Validate a collector's URL. The error quotes nothing of it, as it may contain a password."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise SettingError(
            f"{name}: not the address of a collector of OTLP over HTTP; write http(s)://HOST:PORT, for example "
            f"http://127.0.0.1:4318, and credentials in {HEADERS[1]}"
        )
    return text.rstrip("/") + TRACES_PATH if append else text


def _headers(text: str) -> tuple[tuple[str, Secret], ...]:
    """Parse ``name=value,name=value`` with percent-encoded values."""
    found: list[tuple[str, Secret]] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = part.partition("=")
        name, value = unquote(name).strip().lower(), unquote(value).strip()
        if not equals or not name.replace("-", "").replace("_", "").isalnum() or not value.isprintable():
            raise SettingError(f"{HEADERS[1]}: write NAME=VALUE by comma, values percent-encoded")
        found.append((name, Secret(value)))
    return tuple(found)
