"""Performs :class:`Look` and :class:`Drop` as requests to the agent's own cluster.

A refusal is data: it concerns one manifest. Where the cluster does not answer, or says that it is overloaded, the error
is raised, so that nothing is concluded and the work is tried again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from syncline.apply.asking import Evaluator, Stopped
from syncline.apply.diff.jq import Addressed, Answers, Unknown, Unreadable
from syncline.base.action import Action, Purpose, Work
from syncline.control.executor import IMPERSONATE
from syncline.control.plan import Apply, Create, Delete, Patch, Replace
from syncline.fleet.spoke.work.deletion import delete_applied
from syncline.fleet.spoke.work.executor import ExecutorError, Target, executor_name, reviews
from syncline.fleet.spoke.work.manifests.actions import Drop, Dropped, Known, Look, Looked
from syncline.fleet.spoke.work.manifests.applying import MANAGER, Depth, ManifestPlan, has_content, plan_manifest
from syncline.fleet.spoke.work.manifests.ignoring import IgnoreFieldError
from syncline.fleet.spoke.work.ownership import Ownership, earlier_work, is_left, owner_patch
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unanswered,
    Unavailable,
)
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.manifestworks import APPLIED_WORK
from syncline.kube.objects import Obj, ResourceInfo, generation, owner_references, resource_version

CONFLICT_TRIES: Final = 4
"""Attempts of a write that meets a newer object."""
IMMUTABLE: Final = "field is immutable"
"""What the API says about a field that is never changed."""
MOST_QUESTIONS: Final = 20
"""Rounds of jq expressions of one manifest."""
_NO_EVALUATOR: Final = "JQ expressions cannot be evaluated here: the agent has no evaluator"
_AWAY: Final = (Unanswered, Unavailable, TooManyRequests)
_INVENTORIES: Final = ResourceInfo(
    APPLIED_WORK.group, APPLIED_WORK.version, APPLIED_WORK.kind, "appliedmanifestworks", namespaced=False
)
_REVIEWS: Final = ResourceInfo(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False, verbs=("create",)
)

Steps = Generator[Any, Any, Any]


class Refused(Exception):
    """The executor of a work lacks a right; the text is upstream's."""


class _Moved(Conflict):
    """The object changed between the write of its content and that of its owner."""


class LookHandler:
    """Performs :class:`Look`. ``evaluator`` evaluates the jq expressions of users; None: none can be evaluated."""

    def __init__(self, evaluator: Evaluator | None = None) -> None:
        self._evaluator = evaluator

    def handle(self, action: Look) -> Generator[Any, Any, Looked]:
        try:
            if action.depth is Depth.FULL and action.executor is not None:
                yield from _reviewed(action)
        except Refused as error:
            live = yield from _existing(action)
            return replace(live, error=error, refused=True, tried=True)
        except _AWAY:
            raise
        except (ApiError, ExecutorError) as error:
            return Looked(error=error, unread=str(error), refused=True, tried=True)
        if action.depth is Depth.READ:
            return (yield from _existing(action))
        applied = yield from self._applied(action)
        return replace(applied, tried=True)

    def _applied(self, action: Look) -> Generator[Any, Any, Looked]:
        answers, live, wrote = Answers(), Looked(), False
        for last in range(CONFLICT_TRIES + MOST_QUESTIONS):
            live = yield from _existing(action)
            if live.unread:
                return replace(live, error=RuntimeError(live.unread))
            depth = _depth(action, live.obj)
            if depth is None:
                return replace(live, wrote=wrote)
            try:
                rival = yield from _rival(action, live.obj)
                plan = plan_manifest(
                    action.manifest, live.obj, action.strategy, action.ownership, answers, depth, rival
                )
                if plan.write is not None and action.depth is Depth.DRIFT and action.executor is not None:
                    yield from _reviewed(action)
                left = yield from _performed(action, plan, live.obj)
            except Unknown as unknown:
                if self._evaluator is None:
                    return replace(live, error=IgnoreFieldError(_NO_EVALUATOR))
                answers = yield from self._answers(action, self._evaluator, unknown, answers)
                continue
            except (Conflict, AlreadyExists) as error:
                fields = isinstance(error, Conflict) and not isinstance(error, _Moved)
                contested = isinstance(plan.write, Apply) and fields
                if contested or last >= CONFLICT_TRIES - 1:
                    return replace(live, error=error, contested=contested)
                continue
            except _AWAY:
                raise
            except Refused as error:
                return replace(live, error=error, refused=True)
            except (ApiError, ValueError) as error:
                return replace(live, error=error)
            wrote = plan.write is not None
            if plan.refused:
                return Looked(left, wrote=wrote, error=ValueError(plan.refused), refused=True)
            return Looked(left, wrote=wrote, added=not wrote and _has_additions(action, live.obj, depth))
        return replace(live, error=RuntimeError("the expressions of ignoreFields raise too many questions"))

    @staticmethod
    def _answers(
        action: Look, evaluator: Evaluator, unknown: Unknown, answers: Answers
    ) -> Generator[Work, Any, Answers]:
        questions = list(unknown.questions)
        run = partial(evaluator.answers, questions)
        found = yield Work(f"jq expressions of {action.ref}", run, Purpose.EVALUATION, project=action.ref.namespace)
        read = (Unreadable(one.why) if isinstance(one, Stopped) else one for one in found)
        known = {one.key: each for one, each in zip(questions, read, strict=True)}
        return answers.with_more({key: one for key, one in known.items() if isinstance(one, Addressed | Unreadable)})


def _rival(action: Look, live: Obj | None) -> Generator[Request, Response, str]:
    """Return the AppliedManifestWork whose Application it is already; empty: there is none, or it holds nothing."""
    if live is None or action.ref.group_kind != APPLICATION.group_kind:
        return ""
    other = earlier_work(owner_references(live), action.ownership.reference)
    if not other:
        return ""
    answer = yield client.get(_INVENTORIES, "", other)
    found = None if answer.status == NotFound.code else answer.or_raise()
    return "" if is_left(found) else other


def _depth(action: Look, live: Obj | None) -> Depth | None:
    """Return how the live object is compared, None if it is the one that was right."""
    known = action.known
    if live is None or known is None or known.digest != action.digest:
        return action.depth
    if known.version == resource_version(live):
        return None
    return Depth.METADATA if known.generation and known.generation == generation(live) else action.depth


def _has_additions(action: Look, live: Obj | None, depth: Depth) -> bool:
    update = (action.strategy or {}).get("type", "Update") == "Update"
    known = depth is Depth.DRIFT and action.known is not None and update
    return known and live is not None and not has_content(action.manifest, live, Depth.FULL)


def _place(info: ResourceInfo, namespace: str) -> str:
    return namespace if info.namespaced else ""


def _existing(action: Look) -> Generator[Request, Response, Looked]:
    """Read the object. A refusal is why it is unread."""
    answer = yield client.get(action.info, _place(action.info, action.ref.namespace), action.ref.name)
    try:
        return Looked(answer.or_raise())
    except NotFound:
        return Looked()
    except _AWAY:
        raise
    except ApiError as error:
        return Looked(unread=str(error))


def _performed(action: Look, plan: ManifestPlan, live: Obj | None) -> Generator[Request, Response, Obj | None]:
    """Perform the writes; return the object as it is then."""
    if plan.first is not None:
        answer = yield _request(action.info, plan.first)
        if answer.status != NotFound.code:
            answer.or_raise()
    if plan.write is None:
        return live
    answer = yield _request(action.info, plan.write)
    if plan.instead is not None and answer.status == Invalid.code and IMMUTABLE in answer.refusal().message:
        for one in plan.instead:
            answer = yield _request(action.info, one)
            answer.or_raise()
    left: Obj = answer.or_raise()
    after = owner_patch(left, action.ownership, "own") if plan.own_after else None
    if after is not None:
        answer = yield _request(action.info, after)
        if answer.status == Conflict.code:
            raise _Moved(answer.refusal().message)
        left = answer.or_raise()
    return left


def _request(info: ResourceInfo, write: Action) -> Request:
    """Return the request of one write."""
    match write:
        case Create(obj=obj):
            return client.create(info, obj, field_manager=MANAGER)
        case Replace(obj=obj):
            return client.update(info, obj, field_manager=MANAGER)
        case Patch():
            place = _place(info, write.namespace)
            return client.patch(info, place, write.name, write.kind, write.body, field_manager=MANAGER)
        case Apply(obj=obj):
            return client.server_side_apply(info, obj, field_manager=write.manager, force=write.force)
        case Delete():
            place = _place(info, write.namespace)
            return client.delete(info, place, write.name, uid=write.uid, propagation=write.propagation)
    raise AssertionError(f"no request for {write.describe()}")


# -- executors ----------------------------------------------------------------------------------------------------


def _reviewed(action: Look) -> Generator[Request, Response, None]:
    """Ask whether the executor may do what applying and deleting need. Raises :class:`Refused`, ExecutorError and the
    errors of requests."""
    info, executor = action.info, action.executor
    assert executor is not None, "only works with an executor are reviewed"
    target = Target(info.group, info.version, info.plural, _place(info, action.ref.namespace), action.ref.name)
    for spec in reviews(executor, target, owned=action.ownership.owned):
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
        answer = yield client.create(_REVIEWS, review)
        if not (answer.or_raise().get("status") or {}).get("allowed"):
            raise Refused(target.refusal)
    if target.grants:
        namespace, name = executor_name(executor)
        asked = client.create(info, action.manifest, dry_run=True, field_manager=MANAGER)
        user = {IMPERSONATE: f"system:serviceaccount:{namespace}:{name}"}
        answer = yield replace(asked, headers={**asked.headers, **user})
        try:
            answer.or_raise()
        except Forbidden as error:
            raise Refused(target.escalation) from error
        except AlreadyExists:
            return  # the API checks escalation before existence


# -- deletion -----------------------------------------------------------------------------------------------------


class DropHandler:
    """Performs :class:`Drop`."""

    def handle(self, action: Drop) -> Generator[Request, Response, Dropped]:
        try:
            return (yield from _dropped(action))
        except _AWAY:
            raise
        except ApiError as error:
            return Dropped(pending=True, error=error)


def info_of(resource: Mapping[str, Any]) -> ResourceInfo:
    """Return how a resource of an inventory is requested; its kind may not be served any more."""
    group, version, plural, namespace = (str(resource.get(one) or "") for one in _LOCATION)
    return ResourceInfo(group, version, "", plural, namespaced=bool(namespace))


_LOCATION: Final = ("group", "version", "resource", "namespace")


def _dropped(action: Drop) -> Generator[Request, Response, Dropped]:
    resource, info = action.resource, info_of(action.resource)
    answer = yield client.get(info, str(resource.get("namespace") or ""), str(resource.get("name") or ""))
    if answer.status == NotFound.code:
        return Dropped()
    live: Obj = answer.or_raise()
    if action.orphan:
        left = owner_patch(live, Ownership(action.reference, owned=False), action.reason)
        if left is not None:
            (yield _request(info, left)).or_raise()
        return Dropped()
    found = delete_applied([resource], lambda _: live, action.reference, action.reason)
    for one in found.actions:
        answer = yield _request(info, one)
        if isinstance(one, Delete):
            if answer.status == NotFound.code or (answer.ok and answer.obj.get("kind") == "Status"):
                return Dropped()
            if answer.status == Conflict.code:
                return Dropped(pending=True)  # if another object has its name now, the next look shows it
        answer.or_raise()
    return Dropped(pending=bool(found.pending))


def known_of(looked: Looked, digest: str, before: Known | None) -> Known:
    """Return what to remember of an object that was looked at: its generation only where its content is right."""
    obj = looked.obj
    if obj is None:
        return Known("", 0, digest)
    right = looked.tried and not looked.error and not looked.added
    return Known(resource_version(obj), generation(obj) if right else before.generation if before else 0, digest)
