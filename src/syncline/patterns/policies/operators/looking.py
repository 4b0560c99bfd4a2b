"""What one look at an operator knows and may do (:class:`Look`): requests to the agent's own cluster, in steps."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from syncline.kube import client
from syncline.kube.errors import BadRequest, Forbidden, NotFound
from syncline.kube.objects import (
    GVK,
    Obj,
    ResourceInfo,
    copied,
    dig,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from syncline.patterns.policies.cluster.comparing import bare, compare, equivalent
from syncline.patterns.policies.cluster.enforcing import MANAGER
from syncline.patterns.policies.cluster.reading import AWAY, Access
from syncline.patterns.policies.names import (
    State,
    is_enforced,
)
from syncline.patterns.policies.operators.report import Report, is_unwanted

NAMESPACE: Final = GVK("", "v1", "Namespace")

Steps = Generator[Any, Any, Any]


@dataclass(slots=True)
class Look:
    """One look at an operator. ``versions``: those that the policy allows, none: all; ``again_s``: seconds until it is
    repeated."""

    policy: Obj
    now: datetime
    access: Access
    report: Report
    spec: Mapping[str, Any]
    versions: list[str] = field(default_factory=list)
    again_s: float = 0.0

    @property
    def unwanted(self) -> bool:
        return is_unwanted(self.spec)

    @property
    def enforced(self) -> bool:
        return is_enforced(self.spec.get("remediationAction"))

    def info(self, gvk: GVK) -> ResourceInfo | None:
        info = self.access.served_as(gvk)
        if info is None:
            self.access.watch(gvk.group_kind)
        return info

    def get(self, gvk: GVK, namespace: str, name: str) -> Steps:
        info = self.info(gvk)
        return None if info is None else (yield from self.access.get(info, namespace, name))

    def list(self, gvk: GVK, namespace: str, selector: str = "") -> Steps:
        info = self.info(gvk)
        return [] if info is None else (yield from self.access.list(info, namespace, selector))

    def must(self, gvk: GVK) -> ResourceInfo:
        """Return a kind to write. Raises NotFound if it is not served."""
        info = self.access.served_as(gvk)
        if info is None:
            raise NotFound(f"no matches for kind {gvk.kind!r} in version {gvk.api_version!r}".replace("'", '"'))
        return info

    def create(self, gvk: GVK, wanted: Obj) -> Steps:
        """Create an object, and its namespace if that is missing."""
        info = self.must(gvk)
        answer = yield client.create(info, wanted, field_manager=MANAGER)
        if answer.status == NotFound.code and dig(answer.body, "details", "kind") == "namespaces":
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_of(wanted)}}
            (yield client.create(self.must(NAMESPACE), namespace, field_manager=MANAGER)).or_raise()
            answer = yield client.create(info, wanted, field_manager=MANAGER)
        return answer.or_raise()

    def delete(self, gvk: GVK, live: Obj) -> Steps:
        info = self.must(gvk)
        answer = yield client.delete(
            info, namespace_of(live) if info.namespaced else "", name_of(live), uid=uid_of(live)
        )
        if answer.status != NotFound.code:
            answer.or_raise()

    def merge(self, gvk: GVK, wanted: Obj, live: Obj, whole: tuple[str, ...]) -> Steps:
        """Return the object as it should be, whether that is another one, and whether the cluster forbids it.
        ``whole``: fields of the spec in which nothing else may be."""
        base, forced = copied(live), False
        for key in whole:
            value = dig(wanted, "spec", key)
            if value and not equivalent(value, dig(base, "spec", key), lenient=False)[0]:
                base.setdefault("spec", {})[key] = copied(value)
                forced = True
        found = compare(wanted, base, only=False, metadata_only=False)
        if found.error:
            raise BadRequest(f"{gvk.kind} {namespace_of(live)}/{name_of(live)} cannot be compared: {found.error}")
        if not found.differs:
            return (base, forced, False)
        answer = yield client.update(self.must(gvk), found.merged, dry_run=True, field_manager=MANAGER)
        try:
            after = bare(answer.or_raise())
        except AWAY:
            raise
        except Forbidden:
            return (found.merged, True, True)
        return (found.merged, bool(forced or _content(after) != _content(bare(base))), False)

    def removal(self, key: str, default: str) -> str:
        return str(dig(self.spec, "removalBehavior", key) or default)

    def tolerated(self, key: str) -> bool:
        return bool(dig(self.spec, "complianceConfig", key) == State.COMPLIANT)

    def note(self, key: str, value: Any) -> None:
        if self.report.status.get(key) != value:
            self.report.status[key] = value
            self.report.changed = True


def versions_in(subscription: Obj) -> tuple[str, str]:
    """Return the current and the installed version of a Subscription."""
    status = subscription.get("status") or {}
    return str(status.get("currentCSV") or ""), str(status.get("installedCSV") or "")


def _content(obj: Obj) -> Obj:
    made: Obj = copied(obj)
    made["metadata"] = {key: one for key, one in meta(made).items() if key != "resourceVersion"}
    return made
