"""What is notified of a request, stage by stage: ``audit.k8s.io/v1`` Events.

``serve`` asks :class:`AuditTrail` for each request and names its stages; records go to a sink that ``assembly`` gives
and that writes :func:`event_of` each. Bodies are in records only where the policy wants them, as bytes: a client that
writes decodes them. Source: apiserver ``pkg/endpoints/filters/audit.go`` and ``pkg/audit/request.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from syncline.base.clock import Clock, format_micro_time
from syncline.base.entropy import Entropy
from syncline.base.masking import mask_credentials
from syncline.cluster.access.auditpolicy import AuditPolicy, Decision, Level, Stage
from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.routes import route_of, verb_of
from syncline.cluster.serving import protobuf
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj
from syncline.kube.text.jsontext import read_json
from syncline.kube.yaml import loading as yaml

__all__ = ["AuditRecord", "AuditTrail", "Audited", "event_of"]

MAX_OBJECT_BYTES = 1024 * 1024
"""Longest body that is reported; a longer one is left out, which an annotation says (``audit.k8s.io/truncated``)."""
MAX_ID_CHARS = 64
AUDIT_ID = "audit-id"


@dataclass(slots=True)
class Audited:
    """A request that the policy wants to be notified of. ``caller`` is who asked, ``acting`` as whom; None: refused."""

    audit_id: str
    decision: Decision
    request: Request
    caller: UserInfo | None
    address: str
    began: datetime
    acting: UserInfo | None = None
    constraint: str = ""
    """The verb of constrained impersonation that allowed ``acting``."""
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One stage of one request. ``answer`` is its body where the policy wants it."""

    audited: Audited
    stage: Stage
    at: datetime
    status: int = 0
    answer: bytes | None = None
    content: str = ""
    """Media type of ``answer``."""
    message: str = ""
    reason: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes that it holds while it waits to be written."""
        body = self.audited.body
        return 1_000 + (len(body) if body else 0) + (len(self.answer) if self.answer else 0)


class AuditTrail:
    """Judges requests by ``policy`` and hands records to ``sink``, which must be quick."""

    def __init__(
        self, policy: AuditPolicy, sink: Callable[[AuditRecord], None], clock: Clock, entropy: Entropy
    ) -> None:
        self._policy = policy
        self._sink = sink
        self._clock = clock
        self._entropy = entropy

    def begin(self, request: Request, caller: UserInfo | None, address: str, began: datetime) -> Audited | None:
        """A request has come; None where nothing is to be notified of it."""
        route = route_of(request.path)
        decision = self._policy.decide(caller, verb_of(request.method, route, request.query), route)
        if decision.level is Level.NONE:
            return None
        given = request.headers.get(AUDIT_ID, "")
        usable = given.isascii() and given.isprintable() and len(given) <= MAX_ID_CHARS
        audited = Audited(given if given and usable else self._entropy.uid(), decision, request, caller, address, began)
        self._tell(audited, Stage.RECEIVED)
        return audited

    def read(self, audited: Audited, body: bytes | None) -> None:
        """Its body has come."""
        if audited.decision.level >= Level.REQUEST:
            audited.body = body

    def refused(self, audited: Audited, message: str) -> None:
        """Its credentials were."""
        self._tell(audited, Stage.STARTED, 401, message=message, reason="Unauthorized")

    def started(self, audited: Audited, answer: Response) -> None:
        """An answer that lasts has begun."""
        self._tell(audited, Stage.STARTED, answer.status, annotations=answer.annotations)

    def complete(self, audited: Audited, answer: Response) -> None:
        """The answer is known, or one that lasted is over."""
        lasting = answer.stream is not None or answer.session is not None
        report = answer.obj if answer.status >= 400 and not lasting else None
        report = report if isinstance(report, dict) else {}
        wanted = audited.decision.level is Level.REQUEST_RESPONSE and not lasting
        self._tell(
            audited,
            Stage.COMPLETE,
            answer.status,
            answer=answer.raw if wanted else None,
            content=answer.headers.get("content-type", ""),
            message=str(report.get("message") or ""),
            reason=str(report.get("reason") or ""),
            annotations=answer.annotations,
        )

    def panicked(self, audited: Audited, why: str) -> None:
        """We broke."""
        self._tell(audited, Stage.PANIC, 500, message=f"APIServer panic'd: {why}", reason="InternalError")

    def _tell(
        self,
        audited: Audited,
        stage: Stage,
        status: int = 0,
        *,
        answer: bytes | None = None,
        content: str = "",
        message: str = "",
        reason: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if stage not in audited.decision.omitted:
            at = audited.began if stage is Stage.RECEIVED else self._clock.now()
            self._sink(AuditRecord(audited, stage, at, status, answer, content, message, reason, annotations or {}))


# -- events -------------------------------------------------------------------------------------------------------


def event_of(record: AuditRecord) -> Obj:
    """The Event to write."""
    audited, request = record.audited, record.audited.request
    route = route_of(request.path)
    query = request.raw_query or urlencode(request.query or {})
    event: Obj = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": audited.decision.level.text,
        "auditID": audited.audit_id,
        "stage": record.stage.value,
        "requestURI": mask_credentials(request.path + (f"?{query}" if query else "")),
        "verb": verb_of(request.method, route, request.query or {}),
        "user": _user(audited.caller),
    }
    if audited.acting is not None and audited.acting is not audited.caller:
        event["impersonatedUser"] = _user(audited.acting)
        if audited.constraint:
            event["authenticationMetadata"] = {"impersonationConstraint": audited.constraint}
    event["sourceIPs"] = [audited.address] if audited.address else []
    event["userAgent"] = request.headers.get("user-agent", "")
    if route.resource:
        named = {
            "resource": route.resource,
            "namespace": route.namespace,
            "name": route.name,
            "apiGroup": route.group,
            "apiVersion": route.version,
            "subresource": route.subresource,
        }
        event["objectRef"] = {key: value for key, value in named.items() if value}
    if record.status:
        event["responseStatus"] = _status(record)
    annotations = dict(sorted(record.annotations.items()))
    if record.stage is not Stage.RECEIVED:
        _add_objects(event, record, annotations)
    event["requestReceivedTimestamp"] = format_micro_time(audited.began)
    event["stageTimestamp"] = format_micro_time(record.at)
    if annotations:
        event["annotations"] = annotations
    return event


def _user(user: UserInfo | None) -> Obj:
    if user is None:
        return {}
    who: Obj = {"username": user.name}
    if user.uid:
        who["uid"] = user.uid
    who["groups"] = list(user.groups)
    if user.extra:
        who["extra"] = {key: list(values) for key, values in sorted(user.extra.items())}
    return who


def _status(record: AuditRecord) -> Obj:
    status: Obj = {"metadata": {}}
    if record.status >= 400:
        status["status"] = "Failure"
    if record.message:
        status["message"] = mask_credentials(record.message)
    if record.reason:
        status["reason"] = record.reason
    return status | {"code": record.status}


def _add_objects(event: Obj, record: AuditRecord, annotations: dict[str, str]) -> None:
    audited = record.audited
    bodies = {"requestObject": audited.body, "responseObject": record.answer}
    if any(body is not None and len(body) > MAX_OBJECT_BYTES for body in bodies.values()):
        annotations["audit.k8s.io/truncated"] = "true"
        return
    content = audited.request.headers.get("content-type", "")
    for name, body in bodies.items():
        if not body:
            continue
        value = _decoded(body, content if name == "requestObject" else record.content)
        event[name] = _without_managed_fields(value) if audited.decision.omit_managed_fields else value


def _decoded(body: bytes, content: str) -> Any:
    """The object that a body is; of what cannot be read, only the length."""
    kind = content.partition(";")[0].strip().lower()
    try:
        if kind == protobuf.MEDIA_TYPE:
            return protobuf.decode(body)
        if kind in ("application/yaml", "application/apply-patch+yaml"):
            return yaml.load(body)
        return read_json(body)
    except (ApiError, msgspec.DecodeError, ValueError, RecursionError):
        return {"kind": "Unknown", "bytes": len(body)}


def _without_managed_fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    made = dict(value)
    if isinstance(made.get("metadata"), dict):
        made["metadata"] = {key: part for key, part in made["metadata"].items() if key != "managedFields"}
    if isinstance(made.get("items"), list):
        made["items"] = [_without_managed_fields(item) for item in made["items"]]
    return made
