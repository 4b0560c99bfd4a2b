"""What an OperatorPolicy asks for: its Subscription and its OperatorGroup, or why it is invalid; pure. Texts are
upstream's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from syncline.kube.kinds.operatorlifecycle import OPERATOR_GROUP, SUBSCRIPTION
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.text.names import dns_label
from syncline.patterns.policies.names import is_enforced

MANAGED: Final = "operatorpolicy.policy.open-cluster-management.io/managed"
"""Label, and annotation with NAMESPACE.NAME of the policy, on a Subscription."""
COPIED: Final = "olm.copiedFrom"
_SUBSCRIPTION_FIELDS: Final = frozenset(
    ("source", "sourceNamespace", "name", "channel", "startingCSV", "installPlanApproval", "config")
)
_GROUP_FIELDS: Final = frozenset(
    ("selector", "targetNamespaces", "serviceAccountName", "staticProvidedAPIs", "upgradeStrategy")
)
_CHANNEL: Final = re.compile(r"([a-zA-Z-]*)(\d+)\.(\d+)(\.x)?")
_NO_DEFAULTS: Final = "the subscription defaults could not be determined because "
NO_MANIFEST: Final = f"{_NO_DEFAULTS}the PackageManifest was not found"
NO_CHANNEL: Final = "the default channel could not be determined because the PackageManifest didn't specify one"


class InvalidSpec(Exception):
    """The policy cannot be carried out as it is. ``passing``: that may change by itself."""

    def __init__(self, text: str, *, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


def versions_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the allowed versions: entries may be lists with commas."""
    parts = (part.strip() for entry in spec.get("versions") or () for part in str(entry).split(","))
    return [one for one in parts if one]


def allowed(spec: Mapping[str, Any], versions: Sequence[str], name: str) -> bool:
    """Return whether a version may be installed."""
    if not versions:
        return True
    return name in versions or (bool(name) and dig(spec, "subscription", "startingCSV") == name)


def subscription_of(spec: Mapping[str, Any], given: Any, versions: Sequence[str]) -> Obj:
    """Return the Subscription. Raises InvalidSpec."""
    if not isinstance(given, dict):
        raise InvalidSpec("the policy spec.subscription is invalid: it is not an object")
    name, namespace = given.get("name"), given.get("namespace")
    if not isinstance(name, str) or not name:
        raise InvalidSpec("name is required in spec.subscription")
    problems = dns_label(name)
    if problems:
        raise InvalidSpec(f"the name '{name}' used for the subscription is invalid: {', '.join(problems)}")
    if isinstance(namespace, str) and dns_label(namespace):
        text = f"the namespace '{namespace}' used for the subscription is not a valid namespace identifier"
        raise InvalidSpec(text)
    wanted = {key: one for key, one in given.items() if key != "namespace"}
    _known_fields(wanted, _SUBSCRIPTION_FIELDS, "subscription")
    for key in sorted(_SUBSCRIPTION_FIELDS - {"config"}):
        if key in wanted and not isinstance(wanted[key], str):
            text = (
                f"cannot unmarshal {_json_type(wanted[key])} into Go struct field SubscriptionSpec.{key} of type string"
            )
            raise InvalidSpec(f"the policy spec.subscription is invalid: json: {text}")
    if wanted.get("installPlanApproval"):
        raise InvalidSpec("installPlanApproval is prohibited in spec.subscription")
    automatic = is_enforced(spec.get("remediationAction")) and spec.get("upgradeApproval") == "Automatic"
    wanted["installPlanApproval"] = "Automatic" if automatic and not versions else "Manual"
    metadata = {"name": name} | ({"namespace": namespace} if isinstance(namespace, str) else {})
    return {"apiVersion": SUBSCRIPTION.api_version, "kind": SUBSCRIPTION.kind, "metadata": metadata, "spec": wanted}


def group_of(given: Any, namespace: str) -> Obj:
    """Return the OperatorGroup: the default one if the policy has none. Raises InvalidSpec."""
    base = {"apiVersion": OPERATOR_GROUP.api_version, "kind": OPERATOR_GROUP.kind}
    if given is None:
        metadata = {"generateName": f"{namespace}-", "namespace": namespace}
        return {**base, "metadata": metadata, "spec": {"targetNamespaces": []}}
    if not isinstance(given, dict):
        raise InvalidSpec("the policy spec.operatorGroup is invalid: it is not an object")
    place = given.get("namespace")
    if isinstance(place, str) and place and place != namespace:
        raise InvalidSpec(
            f"the namespace specified in spec.operatorGroup ('{place}') must match the namespace used for the "
            f"subscription ('{namespace}')"
        )
    if not isinstance(given.get("name"), str):
        raise InvalidSpec("name is required in spec.operatorGroup")
    wanted = {key: one for key, one in given.items() if key not in ("name", "namespace")}
    _known_fields(wanted, _GROUP_FIELDS, "operatorGroup")
    return {**base, "metadata": {"name": given["name"], "namespace": namespace}, "spec": wanted}


def _known_fields(given: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise InvalidSpec(f'the policy spec.{where} is invalid: json: unknown field "{key}"')


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "array" if isinstance(value, list) else "object"


def label_of(name: str, namespace: str) -> str:
    """Return the last part of the label that OLM puts on what belongs to a Subscription."""
    text = f"{name}.{namespace}"
    return text if len(text) <= 63 else text[:63].rstrip("._-")


# -- defaults ----------------------------------------------------------------------------------------------------------


def needs_defaults(subscription: Obj) -> bool:
    spec = subscription["spec"]
    complete = all(spec.get(key) for key in ("channel", "source", "sourceNamespace"))
    return not (complete and dig(subscription, "metadata", "namespace"))


def with_defaults(subscription: Obj, manifest: Obj, known: Sequence[Obj]) -> Obj:
    """Return the Subscription with what its package says. ``known``: Subscriptions that the policy had. Raises
    InvalidSpec."""
    spec, status = dict(subscription["spec"]), manifest.get("status") or {}
    source, place = (str(status.get(key) or "") for key in ("catalogSource", "catalogSourceNamespace"))
    if not source or not place:
        raise InvalidSpec(f"{_NO_DEFAULTS}the PackageManifest didn't specify a catalog")
    if (spec.get("source") or source) != source or (spec.get("sourceNamespace") or place) != place:
        raise InvalidSpec(
            f"{_NO_DEFAULTS}the catalog specified in the policy does not match what was found in the PackageManifest "
            "on the cluster"
        )
    if not spec.get("channel"):
        if not status.get("defaultChannel"):
            raise InvalidSpec(NO_CHANNEL)
        spec["channel"] = status["defaultChannel"]
    if not spec.get("source") or not spec.get("sourceNamespace"):
        spec |= {"source": source, "sourceNamespace": place}
    metadata = dict(subscription["metadata"])
    if not metadata.get("namespace"):
        channels = (one for one in _dicts(status.get("channels")) if one.get("name") == spec["channel"])
        channel: Obj = next(channels, {})
        suggested = dig(channel, "currentCSVDesc", "annotations", "operatorframework.io/suggested-namespace")
        metadata["namespace"] = adopted(known) or str(suggested or "")
    return {**subscription, "metadata": metadata, "spec": spec}


def adopted(known: Sequence[Obj]) -> str:
    """Return the namespace of the only Subscription that a policy had."""
    return str(dig(known[0], "object", "metadata", "namespace") or "") if len(known) == 1 else ""


def completed(subscription: Obj, live: Obj) -> Obj:
    """Return the Subscription with what an existing one says."""
    spec = dict(subscription["spec"])
    for key in ("channel", "source", "sourceNamespace"):
        spec[key] = spec.get(key) or str(dig(live, "spec", key) or "")
    return {**subscription, "spec": spec}


# -- packages ----------------------------------------------------------------------------------------------------------


def channel_of(subscription: Obj, manifest: Obj) -> str:
    """Return the channel. Raises InvalidSpec."""
    found = dig(subscription, "spec", "channel") or dig(manifest, "status", "defaultChannel")
    if not found:
        raise InvalidSpec(NO_CHANNEL)
    return str(found)


def deprecation_of(manifest: Obj, channel: str, version: str) -> tuple[str, str, str] | None:
    """Return what of package, channel and bundle is deprecated: its name, what it is, and the message."""
    status = manifest.get("status") or {}
    if isinstance(status.get("deprecation"), dict):
        return str(status.get("packageName") or ""), "Package", str(status["deprecation"].get("message") or "")
    for one in _dicts(status.get("channels")):
        if one.get("name") != channel:
            continue
        if isinstance(one.get("deprecation"), dict):
            return channel, "Channel", str(one["deprecation"].get("message") or "")
        for bundle in _dicts(one.get("entries")):
            if version and bundle.get("name") == version and isinstance(bundle.get("deprecation"), dict):
                return version, "Bundle", str(bundle["deprecation"].get("message") or "")
    return None


def later_channels(manifest: Obj, channel: str) -> list[str]:
    """Return the channels of later minor versions, by the names."""
    found = _CHANNEL.fullmatch(channel)
    if found is None:
        return []
    prefix, major, minor, suffix = found.groups()
    later = re.compile(rf"{re.escape(prefix)}{major}\.(\d+){re.escape(suffix or '')}")
    names = (str(one.get("name") or "") for one in _dicts(dig(manifest, "status", "channels")))
    return sorted(name for name in names if (hit := later.fullmatch(name)) and int(hit[1]) > int(minor))


def package_of(version: Obj) -> str:
    """Return the package that a ClusterServiceVersion belongs to, by its annotation."""
    for kind, value in _properties(annotations_of(version).get("operatorframework.io/properties", "")):
        if kind == "olm.package":
            return str(value.get("packageName") or "")
    return ""


def dependencies_of(plan: Obj, version: str) -> set[str]:
    """Return a version and those of the same InstallPlan that it needs."""
    by_package: dict[str, str] = {}
    needed: dict[str, set[str]] = {}
    for bundle in _dicts(dig(plan, "status", "bundleLookups")):
        name = str(bundle.get("identifier") or "")
        for kind, value in _properties(str(bundle.get("properties") or "")):
            package = str(value.get("packageName") or "")
            if kind == "olm.package":
                by_package[package] = name
            elif kind == "olm.package.required":
                needed.setdefault(name, set()).add(package)
    made, left = set[str](), [version]
    while left:
        one = left.pop()
        if one not in made:
            made.add(one)
            left += (by_package[package] for package in needed.get(one, ()) if package in by_package)
    return made


def _properties(text: str) -> Iterable[tuple[str, Obj]]:
    try:
        found = json.loads(text) if text else {}
    except (json.JSONDecodeError, RecursionError):
        return
    for one in _dicts(found.get("properties") if isinstance(found, dict) else None):
        if isinstance(one.get("value"), dict):
            yield str(one.get("type") or ""), one["value"]


def _dicts(value: Any) -> list[Obj]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def concerns(subscription: Obj, message: str) -> bool:
    """Return whether OLM's message is about this Subscription: it says the same of all of a namespace."""
    name, package = (re.escape(str(dig(subscription, *path))) for path in (("metadata", "name"), ("spec", "name")))
    place = re.escape(str(dig(subscription, "metadata", "namespace")))
    pattern = rf"(?:subscription (?:{name}|{place}/{name})|package (?:{package}|{place}/{package}))(?:$|\s|,|:)"
    return re.search(pattern, message) is not None
