"""What a Klusterlet asks for, what runs for it, and the actions between them: frozen data.

A Klusterlet names a hub through the Secret :data:`BOOTSTRAP` in its namespace; the agent that it gets keeps its own
credentials in :data:`HUB_SECRET` there. Rules: ``pkg/operator/operators/klusterlet`` of upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from syncline.base.action import Action, Handler
from syncline.base.secret import Secret
from syncline.kube.kinds.klusterlets import KLUSTERLET
from syncline.kube.objects import GroupKind, Obj, dig, name_of, uid_of

KLUSTERLETS: Final = KLUSTERLET.group_kind
SECRETS: Final = GroupKind("", "Secret")
NAMESPACES: Final = GroupKind("", "Namespace")
BOOTSTRAP: Final = "bootstrap-hub-kubeconfig"
HUB_SECRET: Final = "hub-kubeconfig-secret"
AGENT_NAMESPACE: Final = "open-cluster-management-agent"
"""Where a Klusterlet without a namespace has its agent."""
ADD_ON_NAMESPACE: Final = "open-cluster-management-agent-addon"
MODES: Final = ("", "Default", "Singleton")
"""Modes in which the agent works on the cluster that has the Klusterlet."""


class Connection(StrEnum):
    """How far an agent is with its hub."""

    JOINING = "joining"
    WORKING = "working"
    REFUSED = "refused"
    """The hub denies the cluster, no longer has it, or does not know the certificate."""
    AWAY = "away"
    FAILED = "failed"
    """The agent cannot join with its bootstrap credentials."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The agent that a Klusterlet asks for. ``cluster`` is empty where the Klusterlet leaves the name open."""

    klusterlet: str
    uid: str
    namespace: str
    cluster: str
    bootstrap: Secret
    """The kubeconfig of the bootstrap Secret."""
    annotations: tuple[tuple[str, str], ...] = ()
    expiration_s: int = 0
    custom_claims: int = 20
    reserved_suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentState:
    """What runs for a Klusterlet. ``server``: its hub; ``detail``: why it does not work; ``kept``: its credentials are
    in the Secret; ``has_credentials``: the hub gave it some."""

    wanted: Wanted
    connection: Connection
    server: str = ""
    detail: str = ""
    has_credentials: bool = False
    kept: bool = False


@dataclass(frozen=True, slots=True)
class RunAgent(Action):
    """Start the agent of a Klusterlet, or another one in its place."""

    wanted: Wanted
    reason: str

    def describe(self) -> str:
        return f"run the agent of klusterlet {self.wanted.klusterlet}"


@dataclass(frozen=True, slots=True)
class KeepCredentials(Action):
    """Write the agent's own credentials into :data:`HUB_SECRET`."""

    klusterlet: str
    namespace: str
    reason: str

    def describe(self) -> str:
        return f"keep the credentials of klusterlet {self.klusterlet} in Secret {self.namespace}/{HUB_SECRET}"


@dataclass(frozen=True, slots=True)
class EndAgent(Action):
    """End the agent of a Klusterlet, and delete the files with its credentials."""

    klusterlet: str
    uid: str
    reason: str

    def describe(self) -> str:
        return f"end the agent of klusterlet {self.klusterlet}"


class Agents(Protocol):
    """Runs the agents of Klusterlets."""

    def state(self, klusterlet: str) -> AgentState | None:
        """Return what runs for a Klusterlet; None: nothing."""

    def handlers(self) -> Mapping[type, Handler]:
        """Return the handlers of :class:`RunAgent`, :class:`KeepCredentials` and :class:`EndAgent`."""

    def follow(self, wake: Callable[[str], None]) -> Callable[[], None]:
        """Call ``wake`` with the name of a Klusterlet whose state changed; returns the function that ends everything
        that runs."""


def namespace_for(klusterlet: Obj) -> str:
    return str(dig(klusterlet, "spec", "namespace") or AGENT_NAMESPACE)


def wanted_by(klusterlet: Obj, bootstrap: Secret) -> Wanted:
    """Return the agent that a Klusterlet asks for."""
    spec = klusterlet.get("spec") or {}
    registration = spec.get("registrationConfiguration") or {}
    claims = registration.get("clusterClaimConfiguration") or {}
    return Wanted(
        name_of(klusterlet),
        uid_of(klusterlet),
        namespace_for(klusterlet),
        str(spec.get("clusterName") or ""),
        bootstrap,
        tuple(sorted((registration.get("clusterAnnotations") or {}).items())),
        int(registration.get("clientCertExpirationSeconds") or 0),
        int(claims.get("maxCustomClusterClaims") or 20),
        tuple(claims.get("reservedClusterClaimSuffixes") or ()),
    )
