"""Events: lenient rules in the core group, strict ones in ``events.k8s.io``.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. The two groups name their fields
differently, but errors have the same paths. Source: Kubernetes ``pkg/apis/core/validation/events.go``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import invalid, required
from syncline.cluster.validation.engine.fields import IMMUTABLE
from syncline.cluster.validation.engine.metadata import metadata_causes, metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

MAX_WORD, MAX_NOTE = 128, 1024
CLUSTER_WIDE = ("default", "kube-system")
"""Namespaces of Events about cluster-scoped objects."""


class EventKind(Kind):
    """Core Events; only with ``eventTime`` are reporter, action and reason required."""

    revalidates = False
    name_check = names.path_segment
    about: ClassVar[str] = "involvedObject"
    note: ClassVar[str] = "message"
    reporter: ClassVar[str] = "reportingComponent"

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        """Skip the check of the name, because old clients created odd ones."""
        return self.content_causes(obj)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = self._place_causes(obj)
        if obj.get("eventTime"):
            causes += self.story_causes(obj)
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return self.content_causes(new)

    def _place_causes(self, obj: Obj) -> list[FieldCause]:
        about, where = dig(obj, self.about, "namespace", default=""), dig(obj, "metadata", "namespace", default="")
        allowed = CLUSTER_WIDE if obj.get("eventTime") else CLUSTER_WIDE[:1]
        fits = where in ("", *allowed) if not about else about == where or bool(obj.get("eventTime"))
        return [] if fits else [invalid("involvedObject.namespace", about, "does not match event.namespace")]

    def story_causes(self, obj: Obj) -> list[FieldCause]:
        controller = str(obj.get(self.reporter) or "")
        causes = [] if controller else [required("reportingController")]
        causes += [invalid("reportingController", controller, problem) for problem in names.qualified_name(controller)]
        for key in ("reportingInstance", "action", "reason"):
            text = str(obj.get(key) or "")
            causes += [] if text else [required(key)]
            causes += _length_causes(text, key, MAX_WORD)
        return causes + _length_causes(str(obj.get(self.note) or ""), "message", MAX_NOTE)


def _length_causes(text: str, path: str, most: int) -> list[FieldCause]:
    return [invalid(path, "", f"can have at most {most} characters")] if len(text.encode()) > most else []


class NewEventKind(EventKind):
    """``events.k8s.io``: time, type, reporter, action and reason are required; only the series may change."""

    about = "regarding"
    note = "note"
    reporter = "reportingController"

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        causes = metadata_causes(obj, names.dns_subdomain, namespaced=True) + self.content_causes(obj)
        causes += _series_causes(obj.get("series"))
        causes += [] if obj.get("eventTime") else [required("eventTime")]
        if obj.get("type") not in ("Normal", "Warning"):
            causes.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
        old_fields = ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource")
        for key, path in zip(old_fields, ("firstTimestamp", "lastTimestamp", "count", "source")):
            if obj.get(key):
                causes.append(invalid(path, "", "needs to be unset"))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = self.content_causes(new) + metadata_update_causes(new, old)
        if new.get("series") != old.get("series"):
            causes += _series_causes(new.get("series"))
        return causes + [
            invalid(path, new.get(key), IMMUTABLE)
            for key, path in _WRITTEN_ONCE.items()
            if new.get(key) != old.get(key)
        ]


_WRITTEN_ONCE = {
    "regarding": "involvedObject",
    "reason": "reason",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "type": "type",
    "eventTime": "eventTime",
    "action": "action",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
}


def _series_causes(series: Any) -> list[FieldCause]:
    if not isinstance(series, dict):
        return []
    causes = [] if (series.get("count") or 0) >= 2 else [invalid("series.count", "", "should be at least 2")]
    return causes if series.get("lastObservedTime") else [*causes, required("series.lastObservedTime")]
