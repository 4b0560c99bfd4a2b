"""A container's environment variables and command line, with ``$(NAME)`` expanded.

The script and the process runtime use it. Rules of the kubelet (``kubelet_pods.go`` makeEnvironmentVariables,
``third_party/forked/golang/expansion``).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from syncline.cluster.machines.containers import Order
from syncline.cluster.machines.processes.surroundings import host_name, master_address, service_variables
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of, namespace_of, uid_of
from syncline.kube.text.quantity import ZERO, QuantityError, parse_quantity

_REFERENCE = re.compile(r"\$\$|\$\(([^()\s]+)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def object_data(obj: Obj) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret."""
    found: dict[str, bytes] = {}
    if obj.get("kind") == "Secret":
        return {key: _decoded(value) for key, value in (obj.get("data") or {}).items()}
    for key, value in (obj.get("data") or {}).items():
        found[key] = str(value).encode()
    for key, value in (obj.get("binaryData") or {}).items():
        found[key] = _decoded(value)
    return found


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(str(value))
    except (binascii.Error, ValueError):
        return b""


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` by its value and ``$$`` by a dollar; unknown references stay."""

    def value(found: re.Match[str]) -> str:
        if found.group() == "$$":
            return "$"
        return variables.get(found.group(1), found.group())

    return _REFERENCE.sub(value, text)


def command_line(container: Obj, variables: Mapping[str, str]) -> list[str]:
    """Return ``command`` and ``args``; empty if the image determines them."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expanded(str(word), variables) for word in words] if container.get("command") else []


def environment_of(order: Order, api: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return all variables; ``api`` overrides those of the API server if its Service is not reachable."""
    services = [each for each in order.objects if each.get("kind") == "Service"]
    host, port = master_address(services)
    variables = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
    variables |= {**service_variables(order.pod, services), **(api or {})}
    variables |= {"HOSTNAME": host_name(order.pod, order.node), "HOME": "/"}
    variables["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return declared(order, variables)


def declared(order: Order, variables: Mapping[str, str]) -> dict[str, str]:
    """Return ``variables`` and the pod's: all that the kubelet knows, before the runtime adds more."""
    variables = dict(variables)
    objects = {(str(each.get("kind")), name_of(each)): object_data(each) for each in order.objects}
    for source in order.container.get("envFrom") or ():
        prefix = str(source.get("prefix") or "")
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            data = objects.get((kind, str(dig(source, field, "name", default=""))), {})
            variables |= {prefix + key: value.decode("utf-8", "replace") for key, value in sorted(data.items())}
    for variable in order.container.get("env") or ():
        value = _value(variable, order, objects, variables)
        if value is not None:
            variables[str(variable["name"])] = value
    return variables


def _value(
    variable: Obj, order: Order, objects: Mapping[tuple[str, str], Mapping[str, bytes]], known: Mapping[str, str]
) -> str | None:
    source = variable.get("valueFrom") or {}
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in source:
            data = objects.get((kind, str(source[field].get("name"))), {})
            found = data.get(str(source[field].get("key")))
            return None if found is None else found.decode("utf-8", "replace")
    if "fieldRef" in source:
        return field_value(str(source["fieldRef"].get("fieldPath")), order)
    if "resourceFieldRef" in source:
        return resource_value(source["resourceFieldRef"], order)
    return expanded(str(variable.get("value") or ""), known)


def field_value(path: str, order: Order) -> str:
    """Return a downward API field; "" for an unknown one."""
    pod = order.pod
    found = _SUBSCRIPT.fullmatch(path)
    if found:
        values = labels_of(pod) if found.group(1) == "labels" else annotations_of(pod)
        return values.get(found.group(2), "")
    known = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": order.node,
        "spec.serviceAccountName": str(dig(pod, "spec", "serviceAccountName", default="")),
        "status.hostIP": order.host_ip,
        "status.hostIPs": order.host_ip,
        "status.podIP": order.pod_ip,
        "status.podIPs": order.pod_ip,
        "metadata.labels": _lines(labels_of(pod)),
        "metadata.annotations": _lines(annotations_of(pod)),
    }
    return known.get(path, "")


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))


def resource_value(source: Obj, order: Order) -> str:
    """Return a container's request or limit, divided and rounded up; an unset limit is the machine's capacity
    (``ExtractContainerResourceValue``, ``MergeContainerResourceLimits``)."""
    where, _, name = str(source.get("resource") or "").partition(".")
    amount = dig(_container(source, order), "resources", where, name)
    if amount is None and where == "limits":
        amount = order.room.get(name)
    try:
        divisor = parse_quantity(str(source.get("divisor") or "1"))
        quantity = parse_quantity(str(amount)) if amount is not None else ZERO
    except QuantityError:
        return "0"
    if name == "cpu":
        return str(-(-quantity.milli() // (divisor.milli() or 1000)))
    return str(-(-quantity.value() // (divisor.value() or 1)))


def _container(source: Obj, order: Order) -> Obj:
    """Return the container that a file names, or the variable's container."""
    name = source.get("containerName")
    parts = ("initContainers", "containers")
    both = [each for part in parts for each in dig(order.pod, "spec", part, default=[])]
    return next((each for each in both if each.get("name") == name), order.container)
