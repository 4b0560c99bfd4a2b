"""Find an address at which the host can reach a Service, for outbound calls of the API server.

Cluster and Pod addresses are not routed here, so endpoints are used (as with ``--enable-aggregator-routing``), and of
Pods only those on the host's network. Source: apiserver ``pkg/util/proxy``.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.storage.store import Key, Store
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.schema.extensions import SIMULATED_SERVER

SLICES = "discovery.k8s.io/endpointslices"
OWNER_LABEL = "kubernetes.io/service-name"
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Reached:
    """An address, or the reason why there is none. ``simulated``: what is answered for the pods, which are simulated
    (:data:`SIMULATED_SERVER`)."""

    address: tuple[str, int] | None
    problem: str = ""
    simulated: str = ""


def reach(store: Store, namespace: str, name: str, port: int) -> Reached:
    """Return the first ready endpoint, ordered by slice name; an ExternalName unchanged."""
    stored = store.get(Key("/services", namespace, name))
    if stored is None:
        return Reached(None, f'service "{name}" not found')
    spec = stored.obj.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return Reached((str(spec.get("externalName") or ""), port))
    found = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if found is None:
        return Reached(None, f'no service port {port} found for service "{name}"')
    wanted = str(found.get("name") or "")
    away = ""
    for host, number, pod in [*_sliced(store, namespace, name, wanted), *_listed(store, namespace, name, wanted)]:
        if not pod:
            return Reached((host, number))
        if _on_host(store, namespace, pod):
            return Reached((HOST, number))
        away = away or pod
    if away:
        why = f'pod "{away}" behind service "{name}" cannot be reached: nothing routes Pod addresses here'
        simulated = annotations_of(stored.obj).get(SIMULATED_SERVER, "")
        return (
            Reached(None, simulated=simulated)
            if simulated
            else Reached(None, f"{why}; use hostNetwork, a Service with endpoints on {HOST}, or a url")
        )
    return Reached(None, f'no endpoints available for service "{name}"')


def _sliced(store: Store, namespace: str, name: str, wanted: str) -> list[tuple[str, int, str]]:
    found = []
    for stored in store.list(SLICES, namespace):
        obj = stored.obj
        if dig(obj, "metadata", "labels", OWNER_LABEL) != name:
            continue
        number = _port(obj.get("ports") or (), wanted)
        for endpoint in obj.get("endpoints") or () if number else ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                pod = _pod_of(endpoint)
                found += [(str(address), number, pod) for address in endpoint.get("addresses") or ()]
    return found


def _listed(store: Store, namespace: str, name: str, wanted: str) -> list[tuple[str, int, str]]:
    """Return the addresses of Endpoints that no controller mirrors to EndpointSlices."""
    stored = store.get(Key("/endpoints", namespace, name))
    found = []
    for subset in (stored.obj.get("subsets") or ()) if stored is not None else ():
        number = _port(subset.get("ports") or (), wanted)
        for entry in subset.get("addresses") or () if number else ():
            found.append((str(entry.get("ip") or ""), number, _pod_of(entry)))
    return found


def _port(ports: list[Obj] | tuple[Obj, ...], wanted: str) -> int:
    return next((int(one.get("port") or 0) for one in ports if str(one.get("name") or "") == wanted), 0)


def _pod_of(entry: Obj) -> str:
    target = entry.get("targetRef") or {}
    return str(target.get("name") or "") if target.get("kind") == "Pod" else ""


def _on_host(store: Store, namespace: str, pod: str) -> bool:
    stored = store.get(Key("/pods", namespace, pod))
    return stored is not None and bool(dig(stored.obj, "spec", "hostNetwork"))
