"""The settings that an ``ArgoCD`` object names, as the ConfigMaps that its operator writes; pure.

Facts: argoproj-labs/argocd-operator cf5d1c02, ``controllers/argocd/configmap.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.settings import CONFIG_MAP
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.kube.yaml.loading import dump

RBAC_MAP: Final = "argocd-rbac-cm"
METHODS: Final = ("label", "annotation", "annotation+label")
_EXCLUDED: Final = (
    ("", "discovery.k8s.io"), ("Endpoints", "EndpointSlice"),
    ("apiregistration.k8s.io",), ("APIService",),
    ("coordination.k8s.io",), ("Lease",),
    ("authentication.k8s.io", "authorization.k8s.io"),
    ("SelfSubjectReview", "TokenReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview",
     "SelfSubjectRulesReview", "SubjectAccessReview"),
    ("certificates.k8s.io",), ("CertificateSigningRequest",),
    ("cert-manager.io",), ("CertificateRequest",),
    ("cilium.io",), ("CiliumIdentity", "CiliumEndpoint", "CiliumEndpointSlice"),
    ("kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io"),
    ("PolicyReport", "ClusterPolicyReport", "EphemeralReport", "ClusterEphemeralReport", "AdmissionReport",
     "ClusterAdmissionReport", "BackgroundScanReport", "ClusterBackgroundScanReport", "UpdateRequest"),
)  # fmt: skip
"""Groups and kinds, in turns, that an instance ignores unless it says otherwise."""
_ASKED: Final = (
    (("server", "route", "enabled"), "the route of the server"),
    (("server", "ingress", "enabled"), "the ingress of the server"),
    (("server", "autoscale", "enabled"), "scaling of the server"),
    (("sso", "dex"), "dex"),
    (("sso", "keycloak"), "Keycloak"),
    (("oidcConfig",), "sign-in by OpenID Connect"),
    (("localUsers",), "local users"),
    (("repo", "sidecarContainers"), "plugins in sidecars of the repo server"),
    (("repo", "initContainers"), "init containers of the repo server"),
    (("notifications", "enabled"), "notifications"),
    (("prometheus", "enabled"), "Prometheus"),
    (("grafana", "enabled"), "Grafana"),
    (("monitoring", "enabled"), "alerts"),
    (("imageUpdater", "enabled"), "the image updater"),
    (("ha", "enabled"), "redundant Redis"),
    (("import",), "an import of a backup"),
    (("argoCDAgent",), "the agent of Argo CD"),
    (("controller", "sharding", "enabled"), "shards of the controller"),
    (("webTerminalEnabled",), "the terminal"),
)
"""Fields of the spec that ask for a workload that does not run here, and what it is."""


def config_maps(instance: Obj, *, source_namespaces: bool) -> list[Obj]:
    """Return the ConfigMaps of an instance. ``source_namespaces``: it may work in other namespaces."""
    spec: Obj = instance.get("spec") or {}
    found = (
        (CONFIG_MAP, _config(spec, name_of(instance))),
        (RBAC_MAP, _rbac(spec)),
        (PARAMETERS_MAP, _parameters(spec, source_namespaces=source_namespaces)),
    )
    return [_map(instance, name, data) for name, data in found]


def not_run(instance: Obj) -> list[str]:
    """Return what an instance asks of workloads that do not run here."""
    return [what for path, what in _ASKED if dig(instance, "spec", *path)]


def problems(instance: Obj) -> list[str]:
    """Return settings that are not used as they are written."""
    method = dig(instance, "spec", "resourceTrackingMethod", default="")
    if method and method not in METHODS:
        return [f"spec.resourceTrackingMethod: found {method!r}, allowed are {', '.join(METHODS)}; annotation is used"]
    return []


def _config(spec: Obj, name: str) -> dict[str, str]:
    method = spec.get("resourceTrackingMethod")
    made = {
        "application.instanceLabelKey": _text(spec, "applicationInstanceLabelKey") or "app.kubernetes.io/instance",
        "application.resourceTrackingMethod": method if method in METHODS else "annotation",
        "admin.enabled": _flag(not spec.get("disableAdmin")),
        "exec.enabled": _flag(spec.get("webTerminalEnabled")),
        "ga.trackingid": _text(spec, "gaTrackingID"),
        "ga.anonymizeusers": _flag(spec.get("gaAnonymizeUsers")),
        "help.chatUrl": _text(spec, "helpChatURL"),
        "help.chatText": _text(spec, "helpChatText"),
        "kustomize.buildOptions": _text(spec, "kustomizeBuildOptions"),
        "oidc.config": _text(spec, "oidcConfig"),
        "resource.exclusions": _text(spec, "resourceExclusions") or dump(_exclusions()),
        "resource.inclusions": _text(spec, "resourceInclusions"),
        "statusbadge.enabled": _flag(spec.get("statusBadgeEnabled")),
        "url": f"https://{name}-server",
        "users.anonymous.enabled": _flag(spec.get("usersAnonymousEnabled")),
    }
    if identity := _text(spec, "installationID"):
        made["installationID"] = identity
    if (respect := dig(spec, "controller", "respectRBAC")) in ("strict", "normal"):
        made["resource.respectRBAC"] = respect
    for one in _entries(spec.get("kustomizeVersions")):
        made[f"kustomize.version.{one.get('version', '')}"] = str(one.get("path") or "")
    for what, field, key in (("health", "resourceHealthChecks", "check"), ("actions", "resourceActions", "action")):
        for one in _entries(spec.get(field)):
            made[f"resource.customizations.{what}.{_kind(one)}"] = str(one.get(key) or "")
    made |= _ignored(spec.get("resourceIgnoreDifferences") or {})
    made |= {str(key): str(value) for key, value in (spec.get("extraConfig") or {}).items()}
    made.setdefault("server.rbac.disableApplicationFineGrainedRBACInheritance", "false")
    return made


def _ignored(said: Mapping[str, Any]) -> dict[str, str]:
    prefix = "resource.customizations.ignoreDifferences."
    made = {f"{prefix}all": dump(said["all"])} if said.get("all") else {}
    for one in _entries(said.get("resourceIdentifiers")):
        made[f"{prefix}{_kind(one)}"] = dump(one.get("customization") or {})
    return made


def _rbac(spec: Obj) -> dict[str, str]:
    said: Obj = spec.get("rbac") or {}
    defaults = {"policy": "", "defaultPolicy": "role:readonly", "scopes": "[groups]"}
    found = {field: said[field] if isinstance(said.get(field), str) else text for field, text in defaults.items()}
    made = {"policy.csv": found["policy"], "policy.default": found["defaultPolicy"], "scopes": found["scopes"]}
    if mode := _text(said, "policyMatcherMode"):
        made["policy.matchMode"] = mode
    return made


def _parameters(spec: Obj, *, source_namespaces: bool) -> dict[str, str]:
    sets = _strings(dig(spec, "applicationSet", "sourceNamespaces")) if source_namespaces else []
    made = {
        "controller.resource.health.persist": "true",
        "applicationsetcontroller.enable.tokenref.strict.mode": _flag(sets),
    }
    # upstream gives these as flags of its processes
    if source_namespaces and (listed := _strings(spec.get("sourceNamespaces"))):
        made["application.namespaces"] = ",".join(listed)
    if sets:
        made["applicationsetcontroller.namespaces"] = ",".join(sets)
    own = {str(key): str(value) for key, value in (spec.get("cmdParams") or {}).items()}
    if not source_namespaces:
        own = {key: value for key, value in own.items() if not key.endswith(".namespaces")}
    return made | own


def _map(instance: Obj, name: str, data: Mapping[str, str]) -> Obj:
    labels = {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/part-of": "argocd",
        "app.kubernetes.io/managed-by": name_of(instance),
    }
    metadata = {"name": name, "namespace": namespace_of(instance), "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def _exclusions() -> list[Obj]:
    pairs = zip(_EXCLUDED[::2], _EXCLUDED[1::2], strict=True)
    return [{"apiGroups": list(groups), "kinds": list(kinds)} for groups, kinds in pairs]


def _kind(one: Mapping[str, Any]) -> str:
    group = str(one.get("group") or "")
    return f"{group}_{one.get('kind', '')}" if group else str(one.get("kind") or "")


def _text(spec: Mapping[str, Any], field: str) -> str:
    found = spec.get(field)
    return found if isinstance(found, str) else ""


def _flag(value: object) -> str:
    return "true" if value else "false"


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
