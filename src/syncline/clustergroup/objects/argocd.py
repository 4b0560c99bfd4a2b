"""The group's own Argo CD, and what belongs to it (reference clustergroup §9)."""

from __future__ import annotations

from typing import Any, Final

from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.facts import Facts
from syncline.clustergroup.printing import Printer, first, is_empty, printed, read_again, to_yaml
from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.gotemplate.sprig.text.runes import title
from syncline.kube.objects import Obj

CERTIFICATES: Final[list[Obj]] = [
    {"mountPath": "/var/run/kube-root-ca", "name": "kube-root-ca"},
    {"mountPath": "/var/run/trusted-ca", "name": "trusted-ca-bundle"},
    {"mountPath": "/var/run/trusted-hub", "name": "trusted-hub-bundle"},
]
BUNDLE: Final[list[Obj]] = [*CERTIFICATES, {"mountPath": "/tmp/ca-bundles", "name": "ca-bundles"}]
SOURCES: Final[list[Obj]] = [
    {"configMap": {"name": "kube-root-ca.crt"}, "name": "kube-root-ca"},
    *(
        {"configMap": {"name": name, "optional": True}, "name": name}
        for name in ("trusted-ca-bundle", "trusted-hub-bundle")
    ),
]
GATHER: Final = (
    "cat /var/run/kube-root-ca/ca.crt /var/run/trusted-ca/ca-bundle.crt /var/run/trusted-hub/hub-kube-root-ca.crt "
    "> /tmp/ca-bundles/ca-bundle.crt || true"
)
ICON: Final = (
    "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxNiAxNiI+PGNpcmNs"
    "ZSBjeD0iOCIgY3k9IjgiIHI9IjciIGZpbGw9IiNlZjdiNGQiLz48L3N2Zz4="
)
"""A dot in orange, in place of upstream's picture of Argo CD."""
_SERVER: Final[Obj] = {
    "autoscale": {"enabled": False},
    "grpc": {"ingress": {"enabled": False}},
    "ingress": {"enabled": False},
    "route": {"enabled": True, "tls": {"insecureEdgeTerminationPolicy": "Redirect", "termination": "reencrypt"}},
    "service": {"type": ""},
}
_POLICY: Final = "\n".join(f"g, {who}, role:admin" for who in ("system:cluster-admins", "cluster-admins", "admin"))


def resources(limit: tuple[str, str], request: tuple[str, str]) -> Obj:
    pairs = {"limits": limit, "requests": request}
    return {"resources": {key: {"cpu": cpu, "memory": memory} for key, (cpu, memory) in pairs.items()}}


def namespace(facts: Facts) -> list[Obj]:
    if facts.single:
        return []
    out = facts.printer("plumbing/gitops-namespace")
    name = out.plain(facts.own_namespace)
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"name": name}, "name": name}, "spec": {}}]


def instance(facts: Facts) -> list[Obj]:
    """Return the ArgoCD and its link in the console."""
    if facts.single:
        return []
    out, given = facts.printer("plumbing/argocd"), facts.argocd
    where = sprint(facts.shared.get("pattern"), "-", facts.group.get("name"))
    group = printed(facts.group.get("name"))
    argocd = {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {
            "finalizers": ["argoproj.io/finalizer"],
            "name": out.plain(f"{group}-gitops"),
            "namespace": out.plain(where),
            "annotations": {"argocd.argoproj.io/compare-options": "IgnoreExtraneous"},
        },
        "spec": _spec(out, facts, given),
        "status": None,
    }
    domain = printed(first(facts.shared.get("localClusterDomain"), facts.shared.get("hubClusterDomain")))
    link = {
        "apiVersion": "console.openshift.io/v1",
        "kind": "ConsoleLink",
        "metadata": {"name": out.plain(f"{group}-gitops-link"), "namespace": out.plain(where)},
        "spec": {
            "applicationMenu": {"section": "OpenShift GitOps", "imageURL": facts.release.picture or ICON},
            "href": out.single(f"https://{group}-gitops-server-{where}.{domain}"),
            "location": "ApplicationMenu",
            "text": out.single(f"{titled(group)} ArgoCD"),
        },
    }
    return [argocd, link]


def titled(text: str) -> str:
    """Return a text with the first letter of each word in upper case."""
    made, inside = [], False
    for char in text:
        made.append(char if inside else title(char))
        inside = char.isalnum() or char in "_'"
    return "".join(made)


def _spec(out: Printer, facts: Facts, given: Obj) -> Obj:
    spec: Obj = {key: given[key] for key in ("resourceHealthChecks", "resourceActions") if not is_empty(given.get(key))}
    own_rights = {"defaultPolicy": "role:readonly", "policy": _POLICY, "scopes": "[groups, email]"}
    repo, excluded = _repo(out, facts, given), given.get("resourceExclusions")
    secrets = {"apiGroups": ["external-secrets.io"], "kinds": ["ExternalSecret"]}
    if not is_empty(excluded):
        spec["resourceExclusions"] = _exclusions(out, excluded, secrets if _excludes_secrets(facts) else None)
    elif _excludes_secrets(facts):
        repo["volumes"] = [*repo["volumes"], secrets]  # where upstream's text lands
    small = resources(("500m", "256Mi"), ("250m", "128Mi"))
    return {
        **spec,
        "resourceTrackingMethod": out.plain(given.get("resourceTrackingMethod")),
        "applicationInstanceLabelKey": "argocd.argoproj.io/instance",
        "applicationSet": resources(("2", "1Gi"), ("250m", "512Mi")),
        "controller": {"processors": {}, **resources(("4", "4Gi"), ("500m", "2Gi"))},
        "sso": {"provider": "dex", "dex": {"openShiftOAuth": True, **small}},
        "initialSSHKnownHosts": {},
        "rbac": own_rights if is_empty(given.get("rbac")) else given["rbac"],
        "repo": repo,
        "server": {**_SERVER, **resources(("500m", "256Mi"), ("125m", "128Mi"))},
        "tls": {"ca": {}},
    }


def _excludes_secrets(facts: Facts) -> bool:
    return not is_empty(facts.shared.get("excludeESO"))


def _exclusions(out: Printer, text: Any, more: Obj | None) -> Any:
    """Return a text of exclusions; another entry is printed below it, which only a text of several lines bears."""
    lines = [f"  {line}" for line in to_yaml(text).split("\n")]
    lines += [f"    {line}" for line in (to_yaml([more]).split("\n") if more else ())]
    return read_again("\n".join(lines), out.part)


def _repo(out: Printer, facts: Facts, given: Obj) -> Obj:
    gather = {
        "command": ["bash", "-c", GATHER],
        "image": out.plain(facts.imperative.get("image")),
        "name": "fetch-ca",
        "resources": {},
        "volumeMounts": BUNDLE,
    }
    plugins = out.each(given.get("configManagementPlugins"), "clusterGroup.argoCD.configManagementPlugins")
    volumes = [*SOURCES, {"emptyDir": {}, "name": "ca-bundles"}, *_listed(out, given, "volumes")]
    if plugins:
        volumes.append({"emptyDir": {}, "name": "cmp-tmp"})
        volumes += (
            {"configMap": {"name": out.inside(f"argocd-cmp-{printed(one['name'])}")}, "name": out.plain(one["name"])}
            for one in plugins
        )
    mount = {"mountPath": "/etc/pki/tls/certs", "name": "ca-bundles"}
    repo: Obj = {
        "env": given.get("env"),
        "initContainers": [gather, *_listed(out, given, "initContainers")],
        **resources(("1", "1Gi"), ("250m", "256Mi")),
        "volumeMounts": [mount, *_listed(out, given, "volumeMounts")],
        "volumes": volumes,
    }
    return {**repo, "sidecarContainers": [_sidecar(out, one) for one in plugins]} if plugins else repo


def _listed(out: Printer, given: Obj, key: str) -> list[Any]:
    found = given.get(key)
    if found is None:
        raise RenderFailed(out.part, f"clusterGroup.argoCD.{key}: len of nil pointer")
    return found if isinstance(found, list) else []


def _sidecar(out: Printer, one: Obj) -> Obj:
    name = out.plain(one["name"])
    mounts: list[Obj] = [
        {"mountPath": "/var/run/argocd", "name": "var-files"},
        {"mountPath": "/home/argocd/cmp-server/plugins", "name": "plugins"},
        {"mountPath": "/tmp", "name": "cmp-tmp"},
    ]
    if not is_empty(one.get("pluginConfig")):
        path = "/home/argocd/cmp-server/config/plugin.yaml"
        mounts.append({"mountPath": path, "subPath": "plugin.yaml", "name": name})
    mounts += one.get("volumeMounts") or []
    made: Obj = {
        "name": name,
        "command": ["/var/run/argocd/argocd-cmp-server"],
        "image": out.plain(one.get("image")),
        "imagePullPolicy": out.plain(first(one.get("imagePullPolicy"), "Always")),
        "securityContext": {"runAsNonRoot": True},
        "volumeMounts": mounts,
    }
    given = {"args": one.get("pluginArgs"), "env": one.get("env")}
    return {**made, **{key: value for key, value in given.items() if not is_empty(value)}}


def plugin_configs(facts: Facts) -> list[Obj]:
    """Return the ConfigMaps of plugins; always in the namespace of the group's own, as upstream."""
    out, made = facts.printer("plumbing/argocd-cmp-plugin-cms"), []
    for one in out.each(facts.argocd.get("configManagementPlugins"), "configManagementPlugins"):
        config = one.get("pluginConfig")
        if not is_empty(config):
            text = out.template(config, "pluginConfig")
            metadata = {
                "name": out.inside(f"argocd-cmp-{printed(one.get('name'))}"),
                "namespace": out.plain(facts.own_namespace),
            }
            data = {"plugin.yaml": text if text.endswith("\n") else f"{text}\n"}
            made.append({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
    return made


def certificates(facts: Facts) -> list[Obj]:
    """Return the ConfigMap into which OpenShift writes the authorities that the cluster trusts."""
    out = facts.printer("plumbing/trusted-bundle-ca-configmap")
    return [trusted(out.plain(facts.argo_namespace), {})]


def trusted(where: Any, more: Obj) -> Obj:
    labels = {"config.openshift.io/inject-trusted-cabundle": "true"}
    metadata = {"name": "trusted-ca-bundle", "namespace": where, **more, "labels": labels}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
