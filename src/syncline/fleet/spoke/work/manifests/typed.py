"""What the strategy Update replaces of the kinds that upstream knows, and what it leaves alone; pure.

For these kinds upstream's agent writes the live object with some fields of the manifest in it, instead of the manifest:
Namespaces, Pods and ServiceAccounts only get labels, annotations and owners, data that operators put into ConfigMaps
and webhooks stays, a Service is written when the manifest changed or its selector or type differ. Other kinds are
replaced as a whole (``applying.py``). Rules: ``resourceapply`` of openshift/library-go, which upstream calls. Jobs and
volume claims are ours: what the control plane adds to them can never be taken away, so upstream fails from then on.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from syncline.kube.defaults.fill import fill_defaults
from syncline.kube.errors import BadRequest
from syncline.kube.objects import GVK, Obj, annotations_of, copied, dig, gvk_of, labels_of, meta

_RBAC: Final = "rbac.authorization.k8s.io"
SPEC_HASH: Final = "operator.openshift.io/spec-hash"
"""Annotation with the hash of the manifest's spec, on kinds whose live spec cannot be compared with it."""
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_BUNDLE, _SERVICE_BUNDLE = "ca-bundle.crt", "service-ca.crt"
_ENCODE: Final = msgspec.json.Encoder().encode


class ManifestError(ValueError):
    """A manifest that contradicts itself; the text is upstream's."""


Prepare = Callable[[Obj, Obj | None], Obj]
"""Returns the manifest as it is written, given the live object."""


def _as_it_is(manifest: Obj, _live: Obj | None) -> Obj:
    return manifest


def _always(_old: Obj, _new: Obj) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Typed:
    """How one kind is updated. ``content``: the fields that the manifest decides. ``recreated``: whether the change
    from a live to a wanted object needs a deletion first; ``immutable``: so does a change that the API refuses for a
    field that is immutable. ``tolerant``: returns the manifest as it is compared, if not as it is written. ``hashed``:
    the fields are compared by :data:`SPEC_HASH`, and ``shown`` of them with the live object."""

    content: tuple[str, ...] = ("spec",)
    prepare: Prepare = _as_it_is
    recreated: Callable[[Obj, Obj], bool] = _always
    immutable: bool = False
    tolerant: Prepare | None = None
    hashed: bool = False
    shown: tuple[str, ...] = ()


def typed(gvk: GVK) -> Typed | None:
    """Return how a kind is updated, None for one that is replaced as a whole."""
    return _KINDS.get(gvk)


def updated(known: Typed, manifest: Obj, live: Obj) -> Obj:
    """Return the live object with the content of the (prepared) manifest."""
    content = {name: manifest[name] for name in known.content if name in manifest}
    return {**{name: value for name, value in live.items() if name not in known.content}, **content}


def same_content(known: Typed, manifest: Obj, live: Obj, equal: Callable[[Any, Any], bool]) -> bool:
    """Return whether a live object has the content of the (prepared) manifest. ``equal``: how a live and a wanted value
    are compared, :func:`same` or :func:`contains`."""
    if known.tolerant is not None:
        manifest = known.tolerant(manifest, live)
    if known.hashed:
        wanted = defaulted(manifest)
        return all(equal(dig(live, "spec", name), dig(wanted, "spec", name)) for name in known.shown)
    filled = defaulted(manifest)
    return all(equal(live.get(name), filled.get(name)) for name in known.content)


def defaulted(manifest: Obj) -> Obj:
    """Return the manifest with the defaults that the API would fill in; as it is where it does not fit its kind."""
    made: Obj = copied(manifest)
    try:
        fill_defaults(gvk_of(made), made, stored=False)
    except (BadRequest, TypeError, AttributeError):
        return manifest
    return made


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; null, missing and empty are the same."""
    return bool(_dense(one) == _dense(other))


def contains(live: Any, wanted: Any) -> bool:
    """Return whether a live value has all that is wanted: more keys of maps are no difference."""
    if isinstance(wanted, dict):
        there = live if isinstance(live, dict) else {}
        return all(contains(there.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list) and len(live) == len(wanted):
        return all(map(contains, live, wanted))
    return same(live, wanted)


def _dense(value: Any) -> Any:
    if isinstance(value, dict):
        made = {key: _dense(each) for key, each in value.items()}
        return {key: each for key, each in made.items() if each is not None} or None
    if isinstance(value, list):
        return [_dense(each) for each in value] or None
    return value


def with_annotation(manifest: Obj, name: str, value: str) -> Obj:
    metadata = {**meta(manifest), "annotations": {**annotations_of(manifest), name: value}}
    return {**manifest, "metadata": metadata}


def _service(manifest: Obj, _live: Obj | None) -> Obj:
    """Go has no missing numbers: a port without a target has 0, for which the API takes the port itself."""
    spec = manifest.get("spec") or {}
    if spec.get("ports"):
        ports = [_ordered({"targetPort": 0, **one}, _SERVICE_PORT) for one in spec["ports"]]
        spec = {**spec, "ports": ports}
    return _hashed({**manifest, "spec": _ordered(spec, _SERVICE)}, None)


def _driver(manifest: Obj, _live: Obj | None) -> Obj:
    return _hashed({**manifest, "spec": _ordered(manifest.get("spec") or {}, _DRIVER)}, None)


def _hashed(manifest: Obj, _live: Obj | None) -> Obj:
    """Add the hash of the spec as upstream computes it: of Go's JSON, with the fields in the order of their type."""
    text = _ENCODE(_dense(manifest["spec"]) or {}).decode()
    for plain, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(plain, escaped)
    return with_annotation(manifest, SPEC_HASH, hashlib.sha256(text.encode()).hexdigest())


def _ordered(value: Obj, names: tuple[str, ...]) -> Obj:
    """Return a map with these keys first, and maps in it with sorted keys."""
    known = {name: _sorted(value[name]) for name in names if name in value}
    return {**known, **{name: _sorted(each) for name, each in sorted(value.items()) if name not in known}}


def _sorted(value: Any) -> Any:
    return {name: _sorted(value[name]) for name in sorted(value)} if isinstance(value, dict) else value


_SERVICE_PORT: Final = ("name", "protocol", "appProtocol", "port", "targetPort", "nodePort")
_SERVICE: Final = (
    *("ports", "selector", "clusterIP", "clusterIPs", "type", "externalIPs", "sessionAffinity", "loadBalancerIP"),
    *("loadBalancerSourceRanges", "externalName", "externalTrafficPolicy", "healthCheckNodePort"),
    *("publishNotReadyAddresses", "sessionAffinityConfig", "ipFamilies", "ipFamilyPolicy"),
    *("allocateLoadBalancerNodePorts", "loadBalancerClass", "internalTrafficPolicy", "trafficDistribution"),
)
_DRIVER: Final = (
    *("attachRequired", "podInfoOnMount", "volumeLifecycleModes", "storageCapacity", "fsGroupPolicy"),
    *("tokenRequests", "requiresRepublish", "seLinuxMount", "nodeAllocatableUpdatePeriodSeconds"),
    "serviceAccountTokenInSecrets",
)


def _secret(manifest: Obj, live: Obj | None) -> Obj:
    """Put ``stringData`` into ``data``; a service account's token keeps what Kubernetes put in."""
    data = dict(manifest.get("data") or {})
    for key, value in (manifest.get("stringData") or {}).items():
        encoded = base64.b64encode(str(value).encode()).decode()
        if data.get(key, encoded) != encoded:
            raise ManifestError(f'Secret.stringData["{key}"] conflicts with Secret.data["{key}"]')
        data[key] = encoded
    made = {name: value for name, value in manifest.items() if name != "stringData"}
    if live is not None and manifest.get("type") == "kubernetes.io/service-account-token":
        data = {**(live.get("data") or {}), **data}
    kind = {"type": manifest.get("type") or "Opaque"} if live is not None else {}
    return {**made, "data": data, **kind}


def _config_map(manifest: Obj, live: Obj | None) -> Obj:
    """Keep the certificates that the network operator puts in where the manifest asks for them."""
    asked = labels_of(manifest).get("config.openshift.io/inject-trusted-cabundle")
    return _with_live(manifest, live, _BUNDLE) if asked == "true" else manifest


def _config_map_compared(manifest: Obj, live: Obj | None) -> Obj:
    """Those of the service-ca operator are no difference; after a write it puts them in again."""
    asked = annotations_of(manifest).get("service.beta.openshift.io/inject-cabundle")
    return _with_live(manifest, live, _SERVICE_BUNDLE) if asked == "true" else manifest


def _with_live(manifest: Obj, live: Obj | None, key: str) -> Obj:
    data, there = manifest.get("data") or {}, (live or {}).get("data") or {}
    return {**manifest, "data": {**data, key: there[key]}} if key in there and key not in data else manifest


def _keeping(*paths: tuple[str, ...]) -> Prepare:
    """Return a function that keeps what the control plane has put into fields that the manifest does not have."""

    def prepare(manifest: Obj, live: Obj | None) -> Obj:
        made = manifest
        for path in paths:
            there = dig(live or {}, *path)
            if there and not dig(manifest, *path):
                made = _with(made, path, there)
        return made

    return prepare


def _with(obj: Obj, path: tuple[str, ...], value: Any) -> Obj:
    first, *rest = path
    inner = obj.get(first)
    return {**obj, first: _with(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value}


def _cluster_role(manifest: Obj, live: Obj | None) -> Obj:
    """The rules of an aggregated role are the control plane's."""
    if not manifest.get("aggregationRule") or live is None:
        return manifest
    return {**manifest, "rules": live.get("rules")}


def _binding(manifest: Obj, live: Obj | None) -> Obj:
    """The groups of the role and of users are written out, as the API fills them in."""
    role = {"apiGroup": "", **(manifest.get("roleRef") or {})}
    if live is None:
        return {**manifest, "roleRef": role}
    users = [{**one, "apiGroup": _RBAC} if one.get("kind") == "User" else one for one in manifest.get("subjects") or ()]
    return {**manifest, "roleRef": {**role, "apiGroup": _RBAC}, "subjects": users}


def _definition(manifest: Obj, live: Obj | None) -> Obj:
    if live is None:
        return manifest
    spec = dict(manifest.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = str(names.get("kind") or "")
    names = {**names, "singular": names.get("singular") or kind.lower()}
    names |= {"listKind": names.get("listKind") or f"{kind}List"} if kind else {}
    return {**manifest, "spec": {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}}


def _webhooks(manifest: Obj, live: Obj | None) -> Obj:
    """Keep the certificates of webhooks for which the manifest has none."""
    there = {one.get("name"): dig(one, "clientConfig", "caBundle") for one in (live or {}).get("webhooks") or ()}

    def kept(one: Obj) -> Obj:
        settings, bundle = one.get("clientConfig") or {}, there.get(one.get("name"))
        if settings.get("caBundle") or not bundle:
            return one
        return {**one, "clientConfig": {**settings, "caBundle": bundle}}

    return {**manifest, "webhooks": [kept(one) for one in manifest.get("webhooks") or ()]}


def _storage_class(manifest: Obj, live: Obj | None) -> Obj:
    """Whether a class is the default one is left to the cluster's administrator."""
    default = annotations_of(live or {}).get(_DEFAULT_CLASS)
    return manifest if default is None else with_annotation(manifest, _DEFAULT_CLASS, default)


def _changes(*fields: str) -> Callable[[Obj, Obj], bool]:
    def differ(live: Obj, wanted: Obj) -> bool:
        one, other = defaulted(live), defaulted(wanted)
        return any(not same(one.get(name), other.get(name)) for name in fields)

    return differ


def _has_other_type(live: Obj, wanted: Obj) -> bool:
    return bool(live.get("type") != wanted.get("type"))


_HOOKS: Final = "admissionregistration.k8s.io"
_CLASS: Final = (
    *("provisioner", "parameters", "reclaimPolicy", "mountOptions", "allowVolumeExpansion"),
    *("volumeBindingMode", "allowedTopologies"),
)
_METADATA_ONLY: Final = Typed(())
_SPEC: Final = Typed()
_KINDS: Final[Mapping[GVK, Typed]] = {
    **{GVK("", "v1", kind): _METADATA_ONLY for kind in ("Namespace", "Pod", "ServiceAccount")},
    GVK("", "v1", "Service"): Typed(prepare=_service, hashed=True, shown=("selector", "type")),
    GVK("", "v1", "ConfigMap"): Typed(("data", "binaryData"), _config_map, tolerant=_config_map_compared),
    GVK("", "v1", "Secret"): Typed(("data", "type"), _secret, _has_other_type, immutable=True),
    GVK("", "v1", "PersistentVolumeClaim"): Typed(
        prepare=_keeping(("spec", "volumeName"), ("spec", "storageClassName"), ("spec", "volumeMode"))
    ),
    GVK("batch", "v1", "Job"): Typed(
        prepare=_keeping(("spec", "selector"), ("spec", "template", "metadata", "labels"))
    ),
    GVK("networking.k8s.io", "v1", "NetworkPolicy"): _SPEC,
    GVK("policy", "v1", "PodDisruptionBudget"): _SPEC,
    GVK(_RBAC, "v1", "ClusterRole"): Typed(("rules", "aggregationRule"), _cluster_role),
    GVK(_RBAC, "v1", "Role"): Typed(("rules",)),
    **{
        GVK(_RBAC, "v1", kind): Typed(("subjects", "roleRef"), _binding)
        for kind in ("ClusterRoleBinding", "RoleBinding")
    },
    GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): Typed(prepare=_definition),
    GVK("storage.k8s.io", "v1", "StorageClass"): Typed(
        _CLASS, _storage_class, _changes("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
    ),
    GVK("storage.k8s.io", "v1", "CSIDriver"): Typed(
        prepare=_driver, recreated=lambda live, wanted: _spec_hash(live) != _spec_hash(wanted), hashed=True
    ),
    **{
        GVK(_HOOKS, "v1", kind): Typed(("webhooks",), _webhooks)
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    },
    **{
        GVK(_HOOKS, version, kind): _SPEC
        for version in ("v1", "v1beta1")
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    },
    **{
        GVK("monitoring.coreos.com", "v1", kind): _SPEC
        for kind in ("ServiceMonitor", "PrometheusRule", "Alertmanager", "Prometheus")
    },
    GVK("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass"): Typed(("parameters", "driver", "deletionPolicy")),
}


def _spec_hash(obj: Obj) -> str:
    return annotations_of(obj).get(SPEC_HASH, "")


def kind_of(manifest: Obj) -> Typed | None:
    """Return :func:`typed` of a manifest's kind."""
    return typed(gvk_of(manifest))
