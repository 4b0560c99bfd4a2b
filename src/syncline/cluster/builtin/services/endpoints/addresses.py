"""Compute the addresses behind a Service: its pods, their readiness and their ports."""

from __future__ import annotations

import msgspec

from syncline.cluster.builtin.pods import is_finished, is_ready
from syncline.kube.objects import Obj, dig, is_terminating, name_of, namespace_of, uid_of


class Backend(msgspec.Struct, frozen=True):
    """A pod with an address."""

    pod: Obj
    address: str
    serving: bool
    terminating: bool
    publish: bool
    """``publishNotReadyAddresses`` of the Service: the pod always counts as ready."""

    @property
    def ready(self) -> bool:
        return self.publish or (self.serving and not self.terminating)

    @property
    def target(self) -> Obj:
        return {
            "kind": "Pod",
            "namespace": namespace_of(self.pod),
            "name": name_of(self.pod),
            "uid": uid_of(self.pod),
        }

    @property
    def node(self) -> str:
        return str(dig(self.pod, "spec", "nodeName", default=""))

    def hostname_in(self, service: Obj) -> str:
        """Return the pod's host name in the Service's domain; "" for most pods."""
        mine = dig(self.pod, "spec", "subdomain") == name_of(service)
        return str(dig(self.pod, "spec", "hostname", default="")) if mine else ""


def backends(service: Obj, pods: tuple[Obj, ...], family: str = "IPv4") -> list[Backend]:
    """Return the unfinished pods with an address of the family, ordered by address."""
    publish = bool(dig(service, "spec", "publishNotReadyAddresses", default=False))
    found: list[Backend] = []
    for pod in pods:
        addresses = [str(each.get("ip")) for each in dig(pod, "status", "podIPs", default=[])]
        addresses = addresses or [str(dig(pod, "status", "podIP", default=""))]
        matching = [each for each in addresses if each and (":" in each) == (family == "IPv6")]
        if matching and not is_finished(pod):
            found.append(Backend(pod, matching[0], is_ready(pod), is_terminating(pod), publish))
    return sorted(found, key=lambda each: (each.address, name_of(each.pod)))


def port_number(port: Obj, pod: Obj) -> int | None:
    """Return the number of ``targetPort`` in a pod; a name is looked up in its containers."""
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, int):
        return target
    for container in dig(pod, "spec", "containers", default=[]):
        for each in container.get("ports") or ():
            if each.get("name") == target and (each.get("protocol") or "TCP") == (port.get("protocol") or "TCP"):
                return int(each["containerPort"])
    return None
