"""Makes the table of built-in resources for ``build_schema.py``.

In comes the ``lightkube-models`` wheel, which knows plural, scope, verbs and subresources of each kind; what it does
not know (short names, categories, connecting subresources, order of groups) stands here, from Kubernetes 1.36's
storage strategies and the aggregator's group priorities. Only stable versions are kept, as a server without feature
flags serves them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
)

SHORT_NAMES = {
    "certificatesigningrequests": ["csr"],
    "componentstatuses": ["cs"],
    "configmaps": ["cm"],
    "cronjobs": ["cj"],
    "customresourcedefinitions": ["crd", "crds"],
    "daemonsets": ["ds"],
    "deployments": ["deploy"],
    "endpoints": ["ep"],
    "events": ["ev"],
    "horizontalpodautoscalers": ["hpa"],
    "ingresses": ["ing"],
    "ipaddresses": ["ip"],
    "limitranges": ["limits"],
    "namespaces": ["ns"],
    "networkpolicies": ["netpol"],
    "nodes": ["no"],
    "persistentvolumeclaims": ["pvc"],
    "persistentvolumes": ["pv"],
    "poddisruptionbudgets": ["pdb"],
    "pods": ["po"],
    "priorityclasses": ["pc"],
    "replicasets": ["rs"],
    "replicationcontrollers": ["rc"],
    "resourcequotas": ["quota"],
    "serviceaccounts": ["sa"],
    "services": ["svc"],
    "statefulsets": ["sts"],
    "storageclasses": ["sc"],
    "volumeattributesclasses": ["vac"],
}

CATEGORIES = {
    "all": (
        "cronjobs",
        "daemonsets",
        "deployments",
        "horizontalpodautoscalers",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "services",
        "statefulsets",
    ),
    "api-extensions": (
        "apiservices",
        "customresourcedefinitions",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
}

PROXY_VERBS = ["create", "delete", "get", "patch", "update"]
STREAM_VERBS = ["create", "get"]
CONNECTED = {
    ("", "nodes"): (("proxy", "NodeProxyOptions", PROXY_VERBS),),
    ("", "pods"): (
        ("attach", "PodAttachOptions", STREAM_VERBS),
        ("exec", "PodExecOptions", STREAM_VERBS),
        ("portforward", "PodPortForwardOptions", STREAM_VERBS),
        ("proxy", "PodProxyOptions", PROXY_VERBS),
    ),
    ("", "services"): (("proxy", "ServiceProxyOptions", PROXY_VERBS),),
}
"""Subresources that carry a stream; no model describes them."""

VERBS = {"post": "create", "put": "update"}
NOT_VERBS = {"global_list", "global_watch"}

_CLASS = re.compile(r"^class \w+\(res\.(?P<base>\w+).*?(?=^class |\Z)", re.MULTILINE | re.DOTALL)
_RESOURCE = re.compile(r"resource=res\.ResourceDef\('(.*?)', '(.*?)', '(.*?)'\)")
_PARENT = re.compile(r"parent=res\.ResourceDef\('(.*?)', '(.*?)', '(.*?)'\)")
_PLURAL = re.compile(r"plural='(.*?)'")
_VERBS = re.compile(r"verbs=\[(.*?)\]")
_ACTION = re.compile(r"action='(.*?)'")


def build_resources(wheel: Path) -> list[dict[str, Any]]:
    """Rows in discovery order: groups by priority, newest version first, plurals by name."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    subresources: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for text, base in _classes(wheel):
        group, version, kind = _found(_RESOURCE, text)
        plural, verbs = _found(_PLURAL, text)[0], _verbs(text)
        action = _ACTION.search(text)
        if action is None:
            rows[group, version, plural] = _row(group, version, kind, plural, verbs, "Namespaced" in base)
            continue
        owner = _found(_PARENT, text)
        entry = {"name": action[1], "kind": kind, "verbs": verbs}
        if (group, version) != owner[:2]:
            entry |= {"group": group, "version": version}
        subresources.setdefault((owner[0], owner[1], plural), []).append(entry)
    for key, row in rows.items():
        listed = subresources.get(key, [])
        listed += [{"name": n, "kind": k, "verbs": v} for n, k, v in CONNECTED.get((key[0], key[2]), ())]
        row["subresources"] = sorted(listed, key=lambda entry: str(entry["name"]))
    kept = [row for row in rows.values() if re.fullmatch(r"v\d+", row["version"]) and row["group"] in GROUP_ORDER]
    return sorted(kept, key=lambda r: (GROUP_ORDER.index(r["group"]), -int(r["version"][1:]), r["plural"]))


def _classes(wheel: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("lightkube/resources/") and not name.endswith("__init__.py"):
                for match in _CLASS.finditer(archive.read(name).decode()):
                    yield match[0], match["base"]


def _found(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.search(text)
    assert match is not None, f"the models changed their form: {pattern.pattern} is missing in {text[:200]}"
    return match.groups()


def _verbs(text: str) -> list[str]:
    listed = re.findall(r"'(\w+)'", _found(_VERBS, text)[0])
    return sorted(VERBS.get(verb, verb) for verb in listed if verb not in NOT_VERBS)


def _row(group: str, version: str, kind: str, plural: str, verbs: list[str], namespaced: bool) -> dict[str, Any]:
    if plural == "componentstatuses":
        verbs = ["get", "list"]
    return {
        "group": group,
        "version": version,
        "kind": kind,
        "plural": plural,
        "singular": kind.lower(),
        "namespaced": namespaced,
        "verbs": verbs,
        "shortNames": SHORT_NAMES.get(plural, []),
        "categories": [name for name, members in CATEGORIES.items() if plural in members],
    }
