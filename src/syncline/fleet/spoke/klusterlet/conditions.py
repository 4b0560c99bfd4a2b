"""The conditions of a Klusterlet, with upstream's types, reasons and, where there is the same to say, words; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.fleet.conditions import condition
from syncline.fleet.spoke.klusterlet.model import BOOTSTRAP, HUB_SECRET, MODES, AgentState, Connection
from syncline.kube.objects import Obj, dig, meta

REGISTRATION_GATES: Final = frozenset(
    {"ClusterClaim", "ClusterProperty", "AddonManagement", "V1beta1CSRAPICompatibility", "MultipleHubs"}
)
WORK_GATES: Final = frozenset({"ExecutorValidatingCaches", "RawFeedbackJsonString"})


def unsupported(klusterlet: Obj) -> str:
    """Return why no agent can run for a Klusterlet, or ""."""
    mode = str(dig(klusterlet, "spec", "deployOption", "mode") or "")
    if mode not in MODES:
        allowed = ", ".join(filter(None, MODES))
        return (
            f"spec.deployOption.mode is {mode}: the agent runs on the cluster that has the Klusterlet; write {allowed}"
        )
    registration = dig(klusterlet, "spec", "registrationConfiguration") or {}
    driver = str(dig(registration, "registrationDriver", "authType") or "csr")
    if driver != "csr":
        return (
            f"spec.registrationConfiguration.registrationDriver.authType is {driver}: agents join with certificate "
            "requests; write csr"
        )
    if dig(registration, "bootstrapKubeConfigs", "type") == "LocalSecrets":
        return (
            "spec.registrationConfiguration.bootstrapKubeConfigs names several hubs: write a Klusterlet with its own "
            "namespace for each of them"
        )
    return ""


def conditions_of(klusterlet: Obj, secret: str, state: AgentState | None) -> list[Obj]:
    """Return all conditions, without times. ``secret``: "" if the bootstrap Secret can be used, else why not."""
    generation = int(meta(klusterlet).get("generation") or 0)
    problem = unsupported(klusterlet)
    if problem:
        return [_gates(klusterlet), condition("Applied", "False", "KlusterletApplyFailed", problem)]
    applied = condition("Applied", "True", "KlusterletApplied", "Klusterlet Component Applied")
    return [_gates(klusterlet), applied, *_agents(state, generation), _hub(klusterlet, secret, state, generation)]


def _gates(klusterlet: Obj) -> Obj:
    unknown = []
    for component, part, known in (
        ("Registration", "registrationConfiguration", REGISTRATION_GATES),
        ("Work", "workConfiguration", WORK_GATES),
    ):
        names = [str(one.get("feature")) for one in dig(klusterlet, "spec", part, "featureGates") or ()]
        foreign = [name for name in names if name not in known]
        unknown.append(f"{component}: [{' '.join(foreign)}]" if foreign else "")
    if not any(unknown):
        return condition("ValidFeatureGates", "True", "FeatureGatesAllValid", "Feature gates are all valid")
    text = f"There are some invalid feature gates of [{' '.join(unknown)}], will process them with default values"
    return condition("ValidFeatureGates", "False", "InvalidFeatureGatesExisting", text)


def _agents(state: AgentState | None, generation: int) -> Iterable[Obj]:
    """Return whether the agents run: upstream's are Deployments, ours is a part of the process that has this role."""
    works = int(state is not None and state.connection in (Connection.WORKING, Connection.REFUSED, Connection.AWAY))
    if state is None:
        yield condition("Available", "False", "NoAvailablePods", "the agent does not run yet", generation)
    elif not works:
        yield condition("Available", "False", "NoAvailablePods", "the work agent waits for the hub", generation)
    else:
        yield condition("Available", "True", "KlusterletAvailable", "the agent is ready", generation)
    for kind, count in (("RegistrationDesiredDegraded", int(state is not None)), ("WorkDesiredDegraded", works)):
        if state is None:
            yield condition(kind, "True", "UnavailablePods", "1 of requested instances are unavailable", generation)
        else:
            yield condition(kind, "False", "DeploymentsFunctional", f"agents that run, as desired: {count}", generation)


def _hub(klusterlet: Obj, secret: str, state: AgentState | None, generation: int) -> Obj:
    namespace = str(dig(klusterlet, "spec", "namespace") or "open-cluster-management-agent")
    server = state.server if state is not None else ""
    reason, said = _of_credentials(namespace, state)
    if reason == "HubConnectionFunctional":
        return condition("HubConnectionDegraded", "False", reason, said, generation)
    if secret:
        first, words = "BootstrapSecretMissing", f'Failed to get bootstrap secret "{namespace}" "{BOOTSTRAP}": {secret}'
    elif state is not None and state.connection is Connection.FAILED:
        first = "BootstrapSecretError"
        words = f'Failed to build bootstrap kube client with bootstrap secret "{namespace}"/"{BOOTSTRAP}" to apiserver '
        words += f"{server}: {state.detail}"
    else:
        first = "BootstrapSecretFunctional"
        words = f"Bootstrap secret {namespace}/{BOOTSTRAP} to apiserver {server} is configured correctly"
    return condition("HubConnectionDegraded", "True", f"{first},{reason}", f"{words}\n{said}", generation)


def _of_credentials(namespace: str, state: AgentState | None) -> tuple[str, str]:
    where = f'"{namespace}" "{HUB_SECRET}"'
    if state is None or not state.has_credentials:
        text = f'Failed to get hub kubeconfig secret {where}: secrets "{HUB_SECRET}" not found'
        return "HubKubeConfigSecretMissing", text
    if state.connection is Connection.WORKING:
        text = f"Hub kubeconfig secret {namespace}/{HUB_SECRET} to apiserver {state.server} is working"
        return "HubConnectionFunctional", text
    if state.connection is Connection.AWAY:
        return (
            "HubKubeConfigError",
            f"Failed to reach apiserver {state.server} with hub config secret {where}: {state.detail}",
        )
    text = f"Operations are not allowed with hub config secret {where} to apiserver {state.server}: {state.detail}"
    return "HubKubeConfigUnauthorized", text
