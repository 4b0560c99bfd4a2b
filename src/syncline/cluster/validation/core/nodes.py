"""Nodes, their runtime classes, and APIServices.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes ``ValidateNode``,
``pkg/apis/node/validation`` and ``kube-aggregator``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, ClassVar

from syncline.base.clock import format_time
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.addresses import legacy_cidr_causes
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import label_causes, metadata_causes, metadata_update_causes
from syncline.cluster.validation.pods.placement import EFFECTS, toleration_causes
from syncline.cluster.validation.pods.podwarnings import OLD_NODE_LABELS
from syncline.cluster.validation.pods.resources import quantity_causes, resource_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.scheduling.podresources import amounts

ONE_EACH = "may specify no more than one CIDR for each IP family"
CIDR_STAYS = 'node updates may not change podCIDR except from "" to valid'


# --- nodes ---------------------------------------------------------------------------------------------------------


def _taint_twice(taint: Obj, path: str) -> FieldCause:
    key, value, effect = (str(taint.get(name) or "") for name in ("key", "value", "effect"))
    cause = duplicate(path, {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")})
    return FieldCause(cause.reason, f"{cause.message}: taints must be unique by key and effect pair", cause.field)


def _taint_pairs(spec: Obj, path: str) -> Iterator[FieldCause]:
    """Validate taints; Kubernetes reports them under ``metadata``."""
    seen: set[tuple[str, str]] = set()
    for where, taint in each(spec, "taints", "metadata"):
        yield from _TAINT(taint, where)
        pair = str(taint.get("key") or ""), str(taint.get("effect") or "")
        if pair in seen:
            yield _taint_twice(taint, where)
        seen.add(pair)


_TAINT = r.every(
    r.text("key", r.qualified),
    r.text("value", r.named(names.label_value)),
    r.need("effect", r.choice(*EFFECTS)),
)


def _amount_causes(obj: Obj, path: str) -> list[FieldCause]:
    return [
        cause
        for key in ("capacity", "allocatable")
        for name, amount in dict(amounts(dig(obj, "status", key))).items()
        for cause in quantity_causes(name, amount, f"status.{key}.{name}")
    ]


class NodeKind(Kind):
    has_status = True
    namespaced = False

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Keep the status: a node registers with it."""

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec, path = spec_of(obj), "spec.podCIDRs"
        causes = [*_taint_pairs(spec, "spec"), *_amount_causes(obj, "")]
        causes += r.items("podCIDRs", legacy_cidr_causes)(spec, "spec")
        ranges = spec.get("podCIDRs") or []
        if len(ranges) > 1 and not causes:
            families = {ipaddress.ip_network(str(text), strict=False).version for text in ranges}
            if len(families) < len(ranges):
                causes.append(invalid(path, ranges, ONE_EACH))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old) + _amount_causes(new, "") + _address_causes(new)
        fresh, before = spec_of(new), spec_of(old)
        ranges, earlier = fresh.get("podCIDRs") or [], before.get("podCIDRs") or []
        if earlier and len(ranges) != len(earlier):
            causes.append(forbidden("spec.podCIDRs", CIDR_STAYS))
        elif earlier:
            causes += [forbidden("spec.podCIDRs", CIDR_STAYS) for one, other in zip(ranges, earlier) if one != other]
        if before.get("providerID") and fresh.get("providerID") != before["providerID"]:
            why = 'node updates may not change providerID except from "" to valid'
            causes.append(forbidden("spec.providerID", why))
        causes += _taint_pairs(fresh, "spec")
        if (fresh.get("externalID") or "") != (before.get("externalID") or ""):
            causes.append(forbidden("spec.externalID", "may not be updated"))
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        why = "spec.externalID: this field is deprecated, and is unused by Kubernetes"
        return [why] if spec_of(new).get("externalID") else []


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

_TOLERATION = ("key", "operator", "value", "effect")


def _shown_toleration(toleration: Obj) -> Obj:
    shown = {key.capitalize(): str(toleration.get(key) or "") for key in _TOLERATION}
    return shown | {"TolerationSeconds": toleration.get("tolerationSeconds")}


class RuntimeClassKind(Kind):
    namespaced = False
    fixed = ("handler",)
    rules = r.every(
        r.need("handler", r.label),
        r.field("overhead", lambda overhead, path: resource_causes({"limits": overhead.get("podFixed") or {}}, path)),
        r.field(
            "scheduling",
            r.field("nodeSelector", label_causes),
            toleration_causes,
            r.each("tolerations", r.unique(*_TOLERATION, at="", show=_shown_toleration)),
        ),
    )

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        selector = dig(new, "scheduling", "nodeSelector", default={})
        return [
            f"scheduling.nodeSelector: {OLD_NODE_LABELS[key]}" for key in sorted(selector) if key in OLD_NODE_LABELS
        ]


# --- services of the API -------------------------------------------------------------------------------------------


LOCAL: Obj = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def _positive(most: int) -> r.Rule:
    return r.within(1, most, f"must be positive and less than {most}")


def _bundle_causes(bundle: Any, path: str) -> list[FieldCause]:
    size = len(str(bundle).rstrip("=")) * 3 // 4
    return [invalid(path, f"{size} bytes", "local APIServices may not have a caBundle")]


_API_SERVICE = r.spec(
    r.demand(
        lambda spec: not spec.get("group") and (spec.get("version") or "") != "v1",
        "group",
        "only v1 may have an empty group and it better be legacy kube",
    ),
    r.filled("group", r.subdomain),
    r.text("version", r.named(names.dns_label_1035)),
    r.number("groupPriorityMinimum", _positive(20_000)),
    r.number("versionPriority", _positive(1_000)),
    r.when(
        r.lacks("service"),
        r.filled("caBundle", _bundle_causes),
        r.filled(
            "insecureSkipTLSVerify",
            r.must(lambda _: False, "local APIServices may not have insecureSkipTLSVerify"),
        ),
        otherwise=r.every(
            r.field(
                "service",
                r.needs("namespace", "name"),
                r.field("port", r.within(1, 65535, "port is not valid: must be between 1 and 65535, inclusive")),
            ),
            r.refuse(
                r.given("insecureSkipTLSVerify", "caBundle"),
                "insecureSkipTLSVerify",
                "may not be true if caBundle is present",
            ),
        ),
    ),
)


class APIServiceKind(Kind):
    has_status = True
    namespaced = False
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True
    rules = _API_SERVICE
    status_rules = r.each("conditions", r.text("status", r.choice("True", "False", "Unknown")))

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Mark a group of this server as available at once (apiserverRegistrationStrategy)."""
        super().prepare_create(obj, ctx)
        if spec_of(obj).get("service") is None:
            obj["status"] = {"conditions": [LOCAL | {"lastTransitionTime": format_time(ctx.now)}]}

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"

        def check(name: str) -> list[str]:
            problems = names.path_segment(name)
            return problems or ([f'must be `spec.version+"."+spec.group`: "{wanted}"'] if name != wanted else [])

        return metadata_causes(obj, check, namespaced=False) + self.content_causes(obj)
