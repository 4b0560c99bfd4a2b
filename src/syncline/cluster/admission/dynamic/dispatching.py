"""Call the webhooks of one request: mutating ones in sequence, validating ones concurrently.

``cluster/verbs/admitting.py`` calls it. If a network result is missing, it raises ``Awaiting``. Source: apiserver
``admission/plugin/webhook/{mutating,validating,generic}``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from syncline.cluster.admission.dynamic.apart import evaluated
from syncline.cluster.admission.dynamic.bindings import kind_in
from syncline.cluster.admission.dynamic.conditions import held
from syncline.cluster.admission.dynamic.hooks import Hook
from syncline.cluster.admission.dynamic.judging import Judging, Round, internal, seen_as
from syncline.cluster.admission.dynamic.matching import Match
from syncline.cluster.admission.dynamic.reviews import BadAnswer, Verdict, denied, permitted, read_answer, review_body
from syncline.cluster.admission.dynamic.services import reach
from syncline.cluster.admission.dynamic.steps import StepFailed, patched
from syncline.cluster.admission.dynamic.subject import Subject, forbidden
from syncline.cluster.resources.conversion import convert
from syncline.kube.errors import ApiError, BadRequest
from syncline.kube.objects import Obj
from syncline.kube.transport.outbound import Awaiting, OutboundCall, Outcome

WEBHOOKS = "MutatingAdmissionWebhook"
DEFAULT_PORT = 443
MUTATION, PATCH = "mutation.webhook.admission.k8s.io/", "patch.webhook.admission.k8s.io/"
FAILED_OPEN = "failed-open."
VALIDATING_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/"
MAX_ANNOTATION_CHARS = 64 * 1024
"""Longest patch that the audit log records."""


@dataclass(frozen=True, slots=True)
class _Invocation:
    """``index`` counts all webhooks of the kind, as in audit annotations."""

    hook: Hook
    match: Match
    index: int
    subject: Subject
    obj: Obj | None
    old: Obj | None
    number: int = 0


def _matching(judging: Judging, hook: Hook, subject: Subject, obj: Obj | None, old: Obj | None) -> Match | None:
    """Return the match; raise Forbidden if conditions cannot be evaluated and the failure policy is Fail."""
    match = hook.scope.match(subject, obj, old, judging.world)
    if match is None or not hook.conditions.expressions:
        return match
    mine, theirs = (seen_as(one, subject, match.resource) for one in (obj, old))
    values = judging.values(subject, match.resource, mine, theirs)
    holds = evaluated(judging, subject, f"hook/{hook.uid}", held, values, hook.conditions)
    if isinstance(holds, str):
        raise forbidden(subject, obj, holds)
    return match if holds else None


# --- one call ------------------------------------------------------------------------------------------------------


def _question(judging: Judging, one: _Invocation) -> tuple[str, Callable[[], OutboundCall]]:
    """Return the key of the call, and a function that creates the call."""
    resource = one.match.resource
    shown = (seen_as(obj, one.subject, resource) for obj in (one.obj, one.old))
    review = review_body(one.hook.version, one.subject, resource, *shown)
    digest = hashlib.sha256(msgspec.json.encode(review)).hexdigest()
    key = f"{one.number}/{one.hook.mutating}/{one.hook.uid}/{digest}"

    def make() -> OutboundCall:
        review["request"] = {"uid": judging.asking.uid(key), **review["request"]}
        return _outbound(judging, one.hook, msgspec.json.encode(review))

    return key, make


def _outbound(judging: Judging, hook: Hook, body: bytes) -> OutboundCall:
    timeout_s = max(min(float(hook.timeout_s), judging.remaining_s()), 0.0)
    query = f"?timeout={math.ceil(timeout_s)}s"
    headers = {"content-type": "application/json", "accept": "application/json, */*"}
    if hook.service is None:
        base, slash, path = hook.url.partition("://")[2].partition("/")
        url = f"https://{base}/{path}{query}" if slash else f"https://{base}/{query}"
        return OutboundCall(url, body, timeout_s, headers=headers, ca_pem=hook.ca_pem)
    name, namespace = str(hook.service.get("name") or ""), str(hook.service.get("namespace") or "")
    port = int(hook.service.get("port") or DEFAULT_PORT)
    server = f"{name}.{namespace}.svc"
    url = f"https://{server}:{port}/{str(hook.service.get('path') or '').lstrip('/')}{query}"
    reached = reach(judging.world.store, namespace, name, port)
    if reached.address is None:
        if reached.simulated:
            raise _Unreached(permitted(body))
        raise _Unreached(Outcome(failure=f'Post "{url}": {reached.problem}'))
    return OutboundCall(
        url, body, timeout_s, headers=headers, ca_pem=hook.ca_pem, server_name=server, address=reached.address
    )


class _Unreached(Exception):
    """A service without an address: the call is not made, and fails unless its server is simulated."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


class _CallFailed(Exception):
    """The webhook could not be reached, or its response is invalid."""


def _refuse_dry_run(hook: Hook, subject: Subject) -> None:
    if subject.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
        raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')


def _verdicts(judging: Judging, calls: Sequence[_Invocation]) -> list[Verdict | _CallFailed]:
    """Return the verdicts; raise Awaiting for missing ones."""
    asking = judging.asking
    keys: list[str] = []
    missing: dict[str, OutboundCall] = {}
    for one in calls:
        _refuse_dry_run(one.hook, one.subject)
        key, make = _question(judging, one)
        keys.append(key)
        if not asking.knows(key):
            try:
                missing[key] = make()
            except _Unreached as unreached:
                asking.learn([key], [unreached.outcome])
    if missing:
        raise Awaiting(tuple(missing.items()))
    return [_judged(judging, one, key, asking.answer(key)) for one, key in zip(calls, keys, strict=True)]


def _judged(judging: Judging, one: _Invocation, key: str, outcome: Outcome) -> Verdict | _CallFailed:
    hook = one.hook
    try:
        verdict = read_answer(outcome, judging.asking.uid(key), hook.version, mutating=hook.mutating)
    except BadAnswer as error:
        return _CallFailed(f'failed calling webhook "{hook.name}": {error}')
    for name, value in verdict.annotations.items():
        judging.annotate(f"{hook.name}/{name}", value)
    for text in verdict.warnings:
        judging.warn(text)
    return verdict


# --- mutating ------------------------------------------------------------------------------------------------------


def call_mutating(
    judging: Judging, hooks: Sequence[Hook], subject: Subject, obj: Obj | None, old: Obj | None, turn: Round
) -> Obj | None:
    """Return the object after all webhooks; raise the first refusal."""
    turn.begin(WEBHOOKS, obj)
    for index, hook in enumerate(hooks):
        match = _matching(judging, hook, subject, obj, old)
        if match is None or turn.skips(WEBHOOKS, hook.uid):
            continue
        one = _Invocation(hook, match, index, subject, obj, old, turn.number)
        after = _mutated(judging, one)
        turn.note(WEBHOOKS, hook.uid, changed=after != obj, again=hook.reinvoked)
        obj = after
    turn.left[WEBHOOKS] = obj
    return obj


def _mutated(judging: Judging, one: _Invocation) -> Obj | None:
    hook, place = one.hook, f"round_{one.number}_index_{one.index}"
    [verdict] = _verdicts(judging, [one])
    after = one.obj
    try:
        if isinstance(verdict, _CallFailed):
            raise verdict
        if not verdict.allowed:
            raise denied(hook.name, verdict.status)
        if verdict.patch:
            after = _patched(judging, one, verdict)
            fields = {"configuration": hook.configuration, "webhook": hook.name, "patch": verdict.patch}
            text = json.dumps({**fields, "patchType": "JSONPatch"}, separators=(",", ":"))
            if len(text) <= MAX_ANNOTATION_CHARS:
                judging.annotate(f"{PATCH}{place}", text)
    except _CallFailed as failure:
        if not hook.ignores:
            raise internal(str(failure)) from None
        judging.annotate(f"{FAILED_OPEN}{MUTATION}{place}", hook.name)
    fields = {"configuration": hook.configuration, "webhook": hook.name, "mutated": after != one.obj}
    judging.annotate(f"{MUTATION}{place}", json.dumps(fields, separators=(",", ":")))
    return after


def _patched(judging: Judging, one: _Invocation, verdict: Verdict) -> Obj:
    """Apply the patch to the version that the webhook saw; decode the result like a request body."""
    hook, subject, resource = one.hook, one.subject, one.match.resource
    if verdict.patch_type != "JSONPatch":
        raise _CallFailed(f'failed calling webhook "{hook.name}": unsupported patch type "{verdict.patch_type}"')
    shown = seen_as(one.obj, subject, resource)
    if shown is None:
        what = "attempted to modify the object, which is not supported for this operation"
        raise internal(f'admission webhook "{hook.name}" {what}')
    try:
        value = patched(shown, verdict.patch)
    except StepFailed as failure:
        raise internal(str(failure)) from None
    renewed = judging.renew(value, kind_in(subject, resource))
    return convert(renewed, subject.kind)


# --- validating ----------------------------------------------------------------------------------------------------


def call_validating(
    judging: Judging, hooks: Sequence[Hook], subject: Subject, obj: Obj | None, old: Obj | None
) -> None:
    """Call all matching webhooks at once; raise the first refusal in their order."""
    calls: list[_Invocation] = []
    for hook in hooks:
        match = _matching(judging, hook, subject, obj, old)
        if match is not None:
            calls.append(_Invocation(hook, match, len(calls), subject, obj, old))
    refusal: ApiError | None = None
    for one, verdict in zip(calls, _verdicts(judging, calls), strict=True):
        if isinstance(verdict, _CallFailed):
            if one.hook.ignores:
                judging.annotate(f"{VALIDATING_FAILED_OPEN}round_0_index_{one.index}", one.hook.name)
            else:
                refusal = refusal or internal(str(verdict))
        elif not verdict.allowed:
            refusal = refusal or denied(one.hook.name, verdict.status)
    if refusal is not None:
        raise refusal
