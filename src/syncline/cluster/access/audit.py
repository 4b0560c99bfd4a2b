"""Record requests in the audit log, stage by stage, as ``audit.k8s.io/v1`` Events.

``serve`` calls :class:`AuditTrail` for each request and stage; records go to the sink of ``assembly``, which writes
:func:`event_of` each. Records hold bodies only if the policy requires them, as bytes; the writer decodes them. Source:
apiserver ``pkg/endpoints/filters/audit.go`` and ``pkg/audit/request.go``.
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

MAX_OBJECT_BYTES = 1024 * 1024
"""Size limit of a recorded body; a longer one is omitted, marked by ``audit.k8s.io/truncated``."""
MAX_ID_CHARS = 64
AUDIT_ID = "audit-id"


@dataclass(slots=True)
class Audited:
    """A request to audit. ``caller`` is the authenticated user, ``acting`` the impersonated one; None: refused."""

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
    """One stage of one request. ``answer`` is the response's body, if the policy requires it."""

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
        """Estimated bytes in memory until the record is written."""
        body = self.audited.body
        return 1_000 + (len(body) if body else 0) + (len(self.answer) if self.answer else 0)


class AuditTrail:
    """Selects requests by ``policy`` and passes records to ``sink``, which must be quick."""

    def __init__(
        self, policy: AuditPolicy, sink: Callable[[AuditRecord], None], clock: Clock, entropy: Entropy
    ) -> None:
        self._policy = policy
        self._sink = sink
        self._clock = clock
        self._entropy = entropy

    def begin(self, request: Request, caller: UserInfo | None, address: str, began: datetime) -> Audited | None:
        """Begin the audit of a request; return None if the policy excludes it."""
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
        """Record the request's body."""
        if audited.decision.level >= Level.REQUEST:
            audited.body = body

    def refused(self, audited: Audited, message: str) -> None:
        """Record that the credentials were refused."""
        self._tell(audited, Stage.STARTED, 401, message=message, reason="Unauthorized")

    def started(self, audited: Audited, answer: Response) -> None:
        """Record that a long-running response started."""
        self._tell(audited, Stage.STARTED, answer.status, annotations=answer.annotations)

    def complete(self, audited: Audited, answer: Response) -> None:
        """Record the response, or the end of a long-running one."""
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
        """Record an internal error."""
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
    """Return the audit Event of a record."""
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
    """Return the object of a body; if it cannot be decoded, only its length."""
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
