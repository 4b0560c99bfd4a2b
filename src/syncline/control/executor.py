"""Performs a plan as a generator of requests: :func:`execute`.

A live or a virtual driver runs the generator; the executor has neither socket nor thread. Each action type has one
handler, registered by ``assembly``; a plan with an unknown action type is a bug and raises.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, assert_never

from syncline.base.action import Action, Handler, Work
from syncline.base.clock import Clock
from syncline.control.events import Said, publish
from syncline.control.plan import (
    Apply,
    Create,
    Delete,
    Emit,
    Evict,
    KubeAction,
    Patch,
    Plan,
    Replace,
    Result,
    SetStatus,
)
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.errors import ApiError, NotFound
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, Obj, ResourceInfo, gvk_of
from syncline.kube.patching.patches import create_merge_patch

Execution = Generator["Request | Work | Together", Any, tuple[Result, ...]]
"""Yields requests and work, receives their responses, returns the result of each action."""

T = TypeVar("T")


HandlersOf = Callable[[str], Mapping[type, Handler]]
"""Returns the handlers of a cluster by type of action; raises OSError if the cluster is not connected."""
IMPERSONATE = "impersonate-user"

Tell = Callable[[Action], Callable[[Result], None]]
"""Called when an action begins; returns a function to call with its result."""


@dataclass(frozen=True, slots=True)
class Together:
    """Generators that may run concurrently; the response is the list of their results in order."""

    parts: tuple[Generator[Any, Any, Any], ...]


def execute(plan: Plan, handlers: HandlersOf, tell: Tell = lambda _action: _no_report) -> Execution:
    """Perform the steps in order, then the status actions. A failed action stops later steps; see :class:`.Plan`."""
    results: list[Result] = []
    for step in plan.steps:
        step_results: list[Result] = []
        if plan.together and len(step) > 1:
            step_results += yield Together(tuple(_performed(action, handlers, tell) for action in step))
        else:
            for action in step:
                step_results.append((yield from _performed(action, handlers, tell)))
        results += step_results
        if not all(result.ok for result in step_results):
            break
    for action in plan.status:
        results.append((yield from _performed(action, handlers, tell)))
    return tuple(results)


def _no_report(_result: Result) -> None: ...


def _performed(action: Action, handlers: HandlersOf, tell: Tell) -> Generator[Any, Any, Result]:
    ended = tell(action)
    result = yield from _attempt(action, handlers)
    ended(result)
    return result


def _attempt(action: Action, handlers: HandlersOf) -> Generator[Any, Any, Result]:
    try:
        handler = handlers(action.cluster).get(type(action))
        if handler is None:
            raise TypeError(f"no handler for {type(action).__name__}: register one in assembly")
        steps = handler.handle(action)
        value = yield from (_addressed(steps, action) if action.cluster or action.user else steps)
    except (ApiError, OSError) as error:  # operating faults are data; bugs go through
        return Result(action, ok=False, error=error)
    return Result(action, ok=True, value=value)


def _addressed(steps: Generator[Any, Any, Any], action: Action) -> Generator[Any, Any, Any]:
    """Send the requests of an action to its cluster, as its user."""
    headers = {IMPERSONATE: action.user} if action.user else {}
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            wanted = steps.throw(failure) if failure is not None else steps.send(answer)
        except StopIteration as end:
            return end.value
        failure, answer = None, None
        if isinstance(wanted, Request):
            wanted = replace(wanted, cluster=action.cluster, headers={**wanted.headers, **headers})
        try:
            answer = yield wanted
        except Exception as error:  # the handler catches it or raises it again
            failure = error


class KubeHandler:
    """Performs the Kubernetes actions on the cluster that the driver's transport reaches."""

    def __init__(self, mapper: Mapper, clock: Clock, field_manager: str) -> None:
        self._mapper = mapper
        self._clock = clock
        self._manager = field_manager
        self._said = Said()

    def handle(self, action: KubeAction) -> Generator[Request, Response, Any]:
        if isinstance(action, Emit):
            return (yield from publish(action, self._now(), self._said))
        request = self._request(action)
        answer = yield request
        if isinstance(action, Delete) and answer.status == NotFound.code:
            return None
        return answer.or_raise()

    def _now(self) -> datetime:
        return self._clock.now()

    def _info(self, gvk: GVK) -> ResourceInfo:
        info = self._mapper.find(gvk) or self._mapper.preferred(gvk.group_kind)
        if info is None:
            raise NotFound(
                f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"',
                reason="NotFound",
            )
        return info

    def _request(self, action: KubeAction) -> Request:
        match action:
            case Create(obj=obj, dry_run=dry_run):
                return client.create(self._info(gvk_of(obj)), obj, dry_run=dry_run, field_manager=self._manager)
            case Replace(obj=obj, subresource=sub, dry_run=dry_run):
                info = self._info(gvk_of(obj))
                return client.update(info, obj, subresource=sub, dry_run=dry_run, field_manager=self._manager)
            case Patch():
                return client.patch(
                    self._info(action.gvk),
                    action.namespace,
                    action.name,
                    action.kind,
                    action.body,
                    subresource=action.subresource,
                    dry_run=action.dry_run,
                    field_manager=action.manager or self._manager,
                )
            case Apply(obj=obj):
                return client.server_side_apply(
                    self._info(gvk_of(obj)),
                    obj,
                    field_manager=action.manager,
                    force=action.force,
                    dry_run=action.dry_run,
                    subresource=action.subresource,
                )
            case Delete():
                return client.delete(
                    self._info(action.gvk),
                    action.namespace,
                    action.name,
                    uid=action.uid,
                    resource_version=action.resource_version,
                    propagation=action.propagation,
                    grace_period_s=action.grace_period_s,
                )
            case Evict():
                pods = self._info(GVK("", "v1", "Pod"))
                return client.evict(pods, action.namespace, action.name, uid=action.uid)
            case SetStatus():
                return self._status_request(action)
            case Emit():
                raise AssertionError("an Event is published, not requested")
            case _ as never:
                assert_never(never)

    def _status_request(self, action: SetStatus) -> Request:
        metadata = {
            key: value for key, value in (("resourceVersion", action.resource_version), ("uid", action.uid)) if value
        }
        body: Obj = {"status": create_merge_patch(action.old, action.new)}
        if metadata:
            body["metadata"] = metadata
        return client.patch(
            self._info(action.gvk),
            action.namespace,
            action.name,
            PatchType.MERGE,
            body,
            subresource=action.subresource,
            field_manager=self._manager,
        )


def kube_handlers(mapper: Mapper, clock: Clock, field_manager: str) -> dict[type, Handler]:
    """Return the handlers that every loop has."""
    handler = KubeHandler(mapper, clock, field_manager)
    kinds: tuple[type, ...] = (Create, Replace, Patch, Apply, Delete, Evict, SetStatus, Emit)
    return dict.fromkeys(kinds, handler)


def run_in_place(
    steps: Generator[Any, Any, T], transport: client.Transport, run: Callable[[Work], Any] = lambda work: work.run()
) -> T:
    """Run a generator of requests and work to its end on a transport that responds at once; return its result."""
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            wanted = steps.throw(failure) if failure is not None else steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        failure, answer = None, None
        if isinstance(wanted, Together):
            answer = [run_in_place(part, transport) for part in wanted.parts]
        elif isinstance(wanted, Work):
            try:
                answer = run(wanted)
            except Exception as error:  # passed to the generator, which raises it unless it handles it
                failure = error
        else:
            answer = transport.send(wanted)
