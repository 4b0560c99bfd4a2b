"""Defaults of Pods and of the pod templates of workloads.

Called by :mod:`syncline.kube.defaults.fill` with an object that the request owns; changes it in place. Admission adds
service account, tolerations, priority and token volume; this module does not.

Source of the rules: Kubernetes ``pkg/apis/core/v1`` defaults and conversions.
"""

from __future__ import annotations

import re
from typing import Any

from syncline.kube.defaults.shape import (
    always,
    canonical_quantities,
    canonical_quantity,
    default,
    default_number,
    drop_empty,
    items,
    null_times,
    structure,
)
from syncline.kube.objects import GVK, Obj
from syncline.kube.scheduling.podresources import asked_together

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
FILE_MODE = 0o644

_REPOSITORY = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?::[0-9]+)?/)?{_REPOSITORY}(?:/{_REPOSITORY})*"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
)


def fill_pod(gvk: GVK, pod: Obj) -> None:
    """Fill a Pod: its spec, requests from limits, and the form of its status."""
    spec = structure(pod, "spec")
    fill_pod_spec(gvk, spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        # Negative values count as one second since they are refused (conversion of Pod).
        spec["terminationGracePeriodSeconds"] = 1
    default(spec, "enableServiceLinks", True)
    for name in ("initContainers", "containers"):
        for container in items(spec, name):
            _requests_from_limits(container)
            if spec.get("hostNetwork"):
                _host_ports(container)
    _fill_pod_resources(spec)
    fill_pod_status(gvk, pod)


def fill_pod_template(gvk: GVK, owner_spec: Obj, key: str = "template") -> None:
    """Fill the template under ``key`` of a workload's spec; its metadata is always written."""
    template = structure(owner_spec, key)
    structure(template, "metadata")
    fill_pod_spec(gvk, structure(template, "spec"))


def fill_pod_spec(gvk: GVK, spec: Obj) -> None:
    """Fill a pod spec, in a Pod or a template."""
    default(spec, "dnsPolicy", "ClusterFirst")
    default(spec, "restartPolicy", "Always")
    default(spec, "securityContext", {})
    default(spec, "terminationGracePeriodSeconds", 30)
    default(spec, "schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # The deprecated field always has the same value (conversion of PodSpec).
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    canonical_quantities(gvk, spec, "overhead")
    canonical_quantities(gvk, spec.get("resources"), "limits", "requests")
    for name in CONTAINER_LISTS:
        for container in items(spec, name):
            _fill_container(gvk, container)
    for toleration in items(spec, "tolerations"):
        drop_empty(toleration, "key", "value")
    for volume in items(spec, "volumes"):
        _fill_volume(gvk, volume)


def _fill_container(gvk: GVK, container: Obj) -> None:
    default(container, "terminationMessagePath", "/dev/termination-log")
    default(container, "terminationMessagePolicy", "File")
    image = container.get("image")
    tag = image_tag(image) if isinstance(image, str) else ""
    default(container, "imagePullPolicy", "Always" if tag == "latest" else "IfNotPresent")
    canonical_quantities(gvk, structure(container, "resources"), "limits", "requests")
    drop_empty(container, "image")
    for port in items(container, "ports"):
        default(port, "protocol", "TCP")
        drop_empty(port, "name")
    for variable in items(container, "env"):
        _fill_variable(gvk, variable)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(name), dict):
            _fill_probe(container[name])
    lifecycle = container.get("lifecycle")
    for hook in ("postStart", "preStop"):
        _fill_http_get(lifecycle.get(hook) if isinstance(lifecycle, dict) else None)


def image_tag(image: str) -> str:
    """Return the tag of an image: ``latest`` if none is written, empty beside a digest or in an invalid name."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def _fill_variable(gvk: GVK, variable: Obj) -> None:
    drop_empty(variable, "value")
    source = variable.get("valueFrom")
    if isinstance(source, dict):
        _fill_sources(gvk, source)
        if isinstance(source.get("fileKeyRef"), dict):
            default(source["fileKeyRef"], "optional", False)


def _fill_sources(gvk: GVK, source: Obj) -> None:
    """Fill ``fieldRef`` and ``resourceFieldRef`` of a variable or a downward API file."""
    if isinstance(source.get("fieldRef"), dict):
        default(source["fieldRef"], "apiVersion", "v1")
    resource = source.get("resourceFieldRef")
    if isinstance(resource, dict):
        always(resource, divisor="0")
        canonical_quantity(gvk, resource, "divisor")


def _fill_probe(probe: Obj) -> None:
    default_number(probe, "timeoutSeconds", 1)
    default_number(probe, "periodSeconds", 10)
    default_number(probe, "successThreshold", 1)
    default_number(probe, "failureThreshold", 3)
    _fill_http_get(probe)
    if isinstance(probe.get("grpc"), dict):
        always(probe["grpc"], service="")


def _fill_http_get(handler: Any) -> None:
    get = handler.get("httpGet") if isinstance(handler, dict) else None
    if isinstance(get, dict):
        default(get, "path", "/")
        default(get, "scheme", "HTTP")


def _host_ports(container: Obj) -> None:
    """On the host network set host ports to the container ports; in Pods only, not in templates."""
    for port in items(container, "ports"):
        if not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def _requests_from_limits(owner: Obj) -> None:
    resources = owner.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if isinstance(resources, dict) and isinstance(limits, dict) and limits:
        requests = structure(resources, "requests")
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _fill_pod_resources(spec: Obj) -> None:
    """Fill the pod-level requests, from those of its containers, then from the pod-level limits
    (``defaultHugePagePodLimits``, ``defaultPodRequests``)."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return
    if resources.get("limits") or resources.get("requests"):
        for name, amount in asked_together(spec, "limits").items():
            if name.startswith("hugepages-") and name not in (resources.get("requests") or {}):
                structure(resources, "limits").setdefault(name, str(amount))
    if resources.get("limits"):
        requests = structure(resources, "requests")
        for name, amount in asked_together(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(amount))
        for name, limit in resources["limits"].items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                requests.setdefault(name, limit)
        if not requests:
            del resources["requests"]


def _fill_volume(gvk: GVK, volume: Obj) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            default(volume[source], "defaultMode", FILE_MODE)
    _fill_downward(gvk, volume.get("downwardAPI"))
    for part in items(volume, "projected", "sources"):
        _fill_downward(gvk, part.get("downwardAPI"))
        if isinstance(part.get("serviceAccountToken"), dict):
            default(part["serviceAccountToken"], "expirationSeconds", 3600)
        if isinstance(part.get("podCertificate"), dict):
            default(part["podCertificate"], "maxExpirationSeconds", 86400)
    if isinstance(volume.get("emptyDir"), dict):
        canonical_quantity(gvk, volume["emptyDir"], "sizeLimit")
    if isinstance(volume.get("hostPath"), dict):
        always(volume["hostPath"], type="")
    fill_volume_source(volume)
    image = volume.get("image")
    if isinstance(image, dict):
        tag = image_tag(str(image.get("reference") or ""))
        default(image, "pullPolicy", "Always" if tag == "latest" else "IfNotPresent")
    ephemeral = volume.get("ephemeral")
    if isinstance(ephemeral, dict) and isinstance(ephemeral.get("volumeClaimTemplate"), dict):
        template = ephemeral["volumeClaimTemplate"]
        structure(template, "metadata")
        fill_claim_spec(gvk, structure(template, "spec"))


_SOURCE_DEFAULTS: dict[str, Obj] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
}


def fill_volume_source(holder: Obj) -> None:
    """Fill the drivers that pod volumes and PersistentVolumes share; ``holder`` has the source as a field."""
    for kind, defaults in _SOURCE_DEFAULTS.items():
        source = holder.get(kind)
        if isinstance(source, dict):
            for key, value in defaults.items():
                default(source, key, value)


def _fill_downward(gvk: GVK, source: Any) -> None:
    for file in items(source, "items"):
        _fill_sources(gvk, file)


def fill_claim_spec(gvk: GVK, spec: Obj) -> None:
    """Fill the spec of a PersistentVolumeClaim, stand-alone or in a template."""
    default(spec, "volumeMode", "Filesystem")
    canonical_quantities(gvk, structure(spec, "resources"), "limits", "requests")


def fill_pod_status(gvk: GVK, pod: Obj) -> None:
    """Fill the form of a Pod's status."""
    status = structure(pod, "status")
    null_times(items(status, "conditions"), "lastProbeTime", "lastTransitionTime")
    _pod_addresses(status)
    for name in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for one in items(status, name):
            always(one, state={}, lastState={}, ready=False, restartCount=0, image="", imageID="")
            canonical_quantities(gvk, one, "allocatedResources")
            canonical_quantities(gvk, one.get("resources"), "limits", "requests")
            _null_state_times(one)


def _null_state_times(status: Obj) -> None:
    for name in ("state", "lastState"):
        state = status.get(name)
        if not isinstance(state, dict):
            continue
        if isinstance(state.get("running"), dict):
            state["running"].setdefault("startedAt", None)
        if isinstance(state.get("terminated"), dict):
            always(state["terminated"], exitCode=0)
            state["terminated"].setdefault("startedAt", None)
            state["terminated"].setdefault("finishedAt", None)


def _pod_addresses(status: Obj) -> None:
    """Set ``podIP`` to the first of ``podIPs``; if they differ the single field wins (conversion of PodStatus)."""
    address, listed = status.get("podIP"), list(items(status, "podIPs"))
    if listed and not address:
        status["podIP"] = listed[0].get("ip", "")
    elif address and (not listed or listed[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
