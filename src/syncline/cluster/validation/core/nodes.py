"""Nodes, the classes of runtimes they offer, and services of the API that run on them.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``ValidateNode``, ``pkg/apis/node/validation`` and ``kube-aggregator``.
"""

from __future__ import annotations

import ipaddress
from typing import Any, ClassVar

from syncline.base.clock import format_time
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import legacy_cidr_causes
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each, immutable, port_number
from syncline.cluster.validation.engine.metadata import NameCheck, label_causes, metadata_causes, metadata_update_causes
from syncline.cluster.validation.pods.placement import toleration_causes
from syncline.cluster.validation.pods.podwarnings import OLD_NODE_LABELS
from syncline.cluster.validation.pods.resources import quantity_causes, resource_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.scheduling.podresources import amounts

__all__ = ["APIServiceKind", "NodeKind", "RuntimeClassKind"]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ONE_EACH = "may specify no more than one CIDR for each IP family"
CIDR_STAYS = 'node updates may not change podCIDR except from "" to valid'
CONDITION_STATUSES = ("True", "False", "Unknown")
MOST_GROUP_PRIORITY = 20_000
MOST_VERSION_PRIORITY = 1_000


# --- nodes ---------------------------------------------------------------------------------------------------------


class NodeKind(Kind):
    has_status = True
    namespaced = False

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """A node registers with its status, which is kept."""

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = _taint_causes(spec_of(obj)) + _amount_causes(obj)
        ranges, path = spec_of(obj).get("podCIDRs") or [], "spec.podCIDRs"
        for index, text in enumerate(ranges):
            causes += legacy_cidr_causes(str(text), f"{path}[{index}]")
        if len(ranges) > 1 and not causes:
            families = {ipaddress.ip_network(str(text), strict=False).version for text in ranges}
            if len(families) < len(ranges):
                causes.append(invalid(path, ranges, ONE_EACH))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old) + _amount_causes(new) + _address_causes(new)
        fresh, before = spec_of(new), spec_of(old)
        ranges, earlier = fresh.get("podCIDRs") or [], before.get("podCIDRs") or []
        if earlier and len(ranges) != len(earlier):
            causes.append(forbidden("spec.podCIDRs", CIDR_STAYS))
        elif earlier:
            changed = [one for one, other in zip(ranges, earlier, strict=True) if one != other]
            causes += [forbidden("spec.podCIDRs", CIDR_STAYS) for _ in changed]
        if before.get("providerID") and fresh.get("providerID") != before["providerID"]:
            why = 'node updates may not change providerID except from "" to valid'
            causes.append(forbidden("spec.providerID", why))
        causes += _taint_causes(fresh)
        if (fresh.get("externalID") or "") != (before.get("externalID") or ""):
            causes.append(forbidden("spec.externalID", "may not be updated"))
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        found: list[str] = []
        if spec_of(new).get("externalID"):
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        return found


def _taint_causes(spec: Obj) -> list[FieldCause]:
    """Kubernetes looks for them under ``metadata``."""
    causes: list[FieldCause] = []
    seen: set[tuple[Any, Any]] = set()
    for where, taint in each(spec, "taints", "metadata"):
        key, value, effect = (str(taint.get(name) or "") for name in ("key", "value", "effect"))
        causes += [invalid(f"{where}.key", key, problem) for problem in names.qualified_name(key)]
        causes += [invalid(f"{where}.value", value, problem) for problem in names.label_value(value)]
        if not effect:
            causes.append(required(f"{where}.effect"))
        elif effect not in EFFECTS:
            causes.append(unsupported(f"{where}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            cause = duplicate(where, shown)
            why = f"{cause.message}: taints must be unique by key and effect pair"
            causes.append(FieldCause(cause.reason, why, cause.field))
        seen.add((key, effect))
    return causes


def _amount_causes(obj: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for key in ("capacity", "allocatable"):
        for name, amount in dict(amounts(dig(obj, "status", key))).items():
            causes += quantity_causes(name, amount, f"status.{key}.{name}")
    return causes


def _address_causes(obj: Obj) -> list[FieldCause]:
    found = dig(obj, "status", "addresses", default=[])
    return [
        duplicate(
            f"status.addresses[{index}]", {"Type": address.get("type", ""), "Address": address.get("address", "")}
        )
        for index, address in enumerate(found)
        if address in found[:index]
    ]


# --- runtimes ------------------------------------------------------------------------------------------------------


class RuntimeClassKind(Kind):
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        handler = str(obj.get("handler") or "")
        causes = [invalid("handler", handler, problem) for problem in names.dns_label(handler) if handler]
        if not handler:
            causes.append(required("handler"))
        if isinstance(obj.get("overhead"), dict):
            causes += resource_causes({"limits": obj["overhead"].get("podFixed") or {}}, "overhead")
        scheduling = obj.get("scheduling")
        if isinstance(scheduling, dict):
            causes += label_causes(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
            causes += toleration_causes(scheduling, "scheduling") + _twice_causes(scheduling)
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + immutable(new, old, "", "handler")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        selector = dig(new, "scheduling", "nodeSelector", default={})
        return [
            f"scheduling.nodeSelector: {OLD_NODE_LABELS[key]}" for key in sorted(selector) if key in OLD_NODE_LABELS
        ]


def _twice_causes(scheduling: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[tuple[str, ...]] = set()
    for where, toleration in each(scheduling, "tolerations", "scheduling"):
        key = tuple(str(toleration.get(name) or "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            shown: Obj = dict(zip(("Key", "Operator", "Value", "Effect"), key, strict=True))
            causes.append(duplicate(where, shown | {"TolerationSeconds": toleration.get("tolerationSeconds")}))
        seen.add(key)
    return causes


# --- services of the API -------------------------------------------------------------------------------------------


LOCAL: Obj = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


class APIServiceKind(Kind):
    has_status = True
    namespaced = False
    name_check: ClassVar[NameCheck] = staticmethod(names.path_segment)
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """One of the server's own groups is available at once (apiserverRegistrationStrategy)."""
        super().prepare_create(obj, ctx)
        if spec_of(obj).get("service") is None:
            obj["status"] = {"conditions": [LOCAL | {"lastTransitionTime": format_time(ctx.now)}]}

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        found = each(new.get("status") or {}, "conditions", "status")
        return [
            unsupported(f"{where}.status", condition.get("status") or "", CONDITION_STATUSES)
            for where, condition in found
            if condition.get("status") not in CONDITION_STATUSES
        ]

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"

        def check(name: str) -> list[str]:
            problems = names.path_segment(name)
            if not problems and name != wanted:
                problems = [f'must be `spec.version+"."+spec.group`: "{wanted}"']
            return problems

        return metadata_causes(obj, check, namespaced=False) + self.content_causes(obj)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
        causes: list[FieldCause] = []
        if not group and version != "v1":
            causes.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
        if group:
            causes += [invalid("spec.group", group, problem) for problem in names.dns_subdomain(group)]
        causes += [invalid("spec.version", version, problem) for problem in names.dns_label_1035(version)]
        for key, most in (("groupPriorityMinimum", MOST_GROUP_PRIORITY), ("versionPriority", MOST_VERSION_PRIORITY)):
            value = int(spec.get(key) or 0)
            if not 0 < value <= most:
                causes.append(invalid(f"spec.{key}", value, f"must be positive and less than {most}"))
        service, insecure, bundle = spec.get("service"), spec.get("insecureSkipTLSVerify"), spec.get("caBundle")
        at = "spec.insecureSkipTLSVerify"
        if service is None:
            if bundle:
                why = "local APIServices may not have a caBundle"
                causes.append(invalid("spec.caBundle", f"{_bytes_of(bundle)} bytes", why))
            if insecure:
                causes.append(invalid(at, True, "local APIServices may not have insecureSkipTLSVerify"))
            return causes
        causes += [required(f"spec.service.{key}") for key in ("namespace", "name") if not service.get(key)]
        port = service.get("port")
        if isinstance(port, int) and port_number(port, ""):
            why = "port is not valid: must be between 1 and 65535, inclusive"
            causes.append(invalid("spec.service.port", port, why))
        if insecure and bundle:
            causes.append(invalid(at, True, "may not be true if caBundle is present"))
        return causes


def _bytes_of(bundle: Any) -> int:
    text = str(bundle).rstrip("=")
    return len(text) * 3 // 4
