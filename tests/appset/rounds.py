"""Reconciles of one ApplicationSet, one round at a time, by its controller over an API that is a table of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.appset.answers import World

from syncline.apply.asking import Ask
from syncline.apply.diff.jq import JqQuestion, answer
from syncline.appset.asking import AnswerStore, Asking, AskRows
from syncline.appset.controller import ApplicationSets
from syncline.appset.observing.kinds import Listed, ListKind, ListStore
from syncline.appset.questions import Answer
from syncline.base.clock import format_time, time_or_none
from syncline.control.cache import Cache
from syncline.control.executor import execute
from syncline.control.plan import Create, Delete, Emit, Outcome, Patch, Plan, Replace, Requeue, Result, Retry, SetStatus
from syncline.kube.errors import ApiError, Conflict, NotFound
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    finalizers,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
)
from syncline.kube.patching.patches import json_merge_patch

NOW = time_or_none("2026-06-01T12:00:00Z") or datetime.max
MARK = re.compile(r"@now(?:([+-]\d+)([smh]))?@")
UNITS = {"s": 1, "m": 60, "h": 3600}
KEYS = {
    "policy": "policy",
    "enablePolicyOverride": "enable.policy.override",
    "enableProgressiveSyncs": "enable.progressive.syncs",
    "maxResourcesStatusCount": "status.max.resources.count",
    "newGitFileGlobbing": "enable.new.git.file.globbing",
}
LISTS = {
    "globalPreservedAnnotations": "global.preserved.annotations",
    "globalPreservedLabels": "global.preserved.labels",
}
CONTROL = "argocd"


def at_now(value: Any, now: datetime = NOW) -> Any:
    """The value with ``@now-30s@`` and its kin as times."""

    def put(found: re.Match[str]) -> str:
        seconds = int(found[1]) * UNITS[found[2]] if found[1] else 0
        return format_time(now + timedelta(seconds=seconds))

    return json.loads(MARK.sub(put, json.dumps(value)))


@dataclass
class Round:
    """What one reconcile did."""

    writes: list[Obj] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    outcome: Outcome | None = None

    @property
    def error(self) -> str | None:
        return self.outcome.error if isinstance(self.outcome, Retry) else None

    @property
    def requeue_s(self) -> float:
        return self.outcome.after_s if isinstance(self.outcome, Requeue) else 0


class Table:
    """Objects by identity, and the handlers of actions on them."""

    def __init__(self, objects: list[Obj], fail: Mapping[str, str], world: World, now: datetime = NOW) -> None:
        self.cache = Cache(Mapper())
        self.store, self.lists = AnswerStore(), ListStore()
        self.controller = ApplicationSets(self.store, CONTROL, lists=self.lists).controller()
        for name, values in self.controller.indices.items():
            self.cache.add_index(name, values)
        self.fail, self.world, self.now = fail, world, now
        self.slow = False
        """Whether questions are answered in the background, and not yet."""
        self.round = Round()
        self._version = 100
        for obj in objects:
            self.put(obj)

    # -- objects -----------------------------------------------------------------------------------------------

    def put(self, obj: Obj) -> Obj:
        self._version += 1
        metadata = {"namespace": CONTROL, "uid": f"uid-{self._version}", **obj["metadata"]}
        made = {**obj, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        kind = ref_of(made).group_kind
        if is_terminating(made) and not finalizers(made):
            old = self.cache.drop(kind, namespace_of(made), name_of(made))
            self._tell(kind, old, None)
            return made
        self._tell(kind, self.cache.put(kind, made), made)
        return made

    def _tell(self, kind: GroupKind, old: Obj | None, new: Obj | None) -> None:
        if kind == APPLICATION_SET.group_kind and self.controller.predicate is not None:
            self.controller.predicate(old, new)

    def of(self, kind: str) -> list[Obj]:
        return self.cache.objects(GroupKind("argoproj.io", kind))

    def get(self, ref: ObjectRef) -> Obj:
        found = self.cache.get(ref)
        if found is None:
            raise NotFound(f"{ref} not found")
        return found

    # -- actions -----------------------------------------------------------------------------------------------

    def handle(self, action: Any) -> Generator[Any, Any, Any]:
        yield from ()
        match action:
            case Create(dry_run=True) | Patch(dry_run=True):
                return None
            case Create(obj=obj):
                return self._write("create", obj, {})
            case Patch(body=body):
                old = self.get(action.target)
                wanted = (body.get("metadata") or {}).get("resourceVersion")
                if wanted not in (None, resource_version(old)):
                    raise Conflict("the object has been modified")
                return self._write("patch", json_merge_patch(old, body), body)
            case Replace(obj=obj):
                return self._write("update", obj, {})
            case Delete():
                found = self.cache.get(action.target)
                return self._delete(found) if found is not None else None
            case SetStatus(new=new):
                return self.put({**self.get(action.target), "status": new})
            case Emit():
                kind = "Warning" if action.warning else "Normal"
                self.round.events.append(f"{kind} {action.event_reason} {action.message}")
            case AskRows(question=question) if self.slow:
                return Asking(question, self.now, self.now)
            case AskRows(question=question, fresh=fresh):
                found = replace(self.world.answer(question), at=self.now, answers=(fresh,) if fresh else ())
                return self._keep(action, found)
            case ListKind():
                kinds = self.world.given.get("objects") or []
                named = [one for one in kinds if f"{one['kind'].lower()}s" == action.plural]
                return self.lists.keep((action.api_version, action.plural), Listed(self.now, tuple(named)))
            case Ask(questions=questions):
                return {one.key: answer(one) for one in questions if isinstance(one, JqQuestion)}
        return None

    def _keep(self, action: AskRows, found: Answer) -> Answer:
        running = self.store.begin(action, self.now)
        return self.store.end(running, found, action.fresh, action.set)

    def _fails(self, verb: str, obj: Obj) -> None:
        why = self.fail.get(f"{verb} {obj['kind']} {name_of(obj)}")
        if why:
            raise ApiError(why)

    def _write(self, verb: str, obj: Obj, patch: Obj) -> Obj:
        self._fails(verb, obj)
        self._note(verb, obj, patch)
        return self.put(obj)

    def _delete(self, obj: Obj) -> Obj | None:
        self._fails("delete", obj)
        self._note("delete", obj, {})
        stamp = obj["metadata"].get("deletionTimestamp") or format_time(self.now)
        made = self.put({**obj, "metadata": {**obj["metadata"], "deletionTimestamp": stamp}})
        return made if finalizers(made) else None

    def _note(self, verb: str, obj: Obj, patch: Obj) -> None:
        if obj["kind"] != "Application":
            return
        metadata = {key: value for key, value in (patch.get("metadata") or {}).items() if key != "resourceVersion"}
        bare = {key: value for key, value in patch.items() if key != "metadata"}
        bare |= {"metadata": metadata} if metadata else {}
        self.round.writes.append({"verb": verb, "name": name_of(obj), **({"patch": bare} if bare else {})})

    # -- rounds ------------------------------------------------------------------------------------------------

    def reconcile(self, name: str = "set", namespace: str = CONTROL) -> Round:
        """Run one reconcile to its end."""
        self.round = Round()
        observed = self.controller.observe(self.cache, ObjectRef(*APPLICATION_SET.group_kind, namespace, name))
        if observed is None:
            return self.round
        plan = self.controller.plan(observed, self.now)
        settle = self.controller.settle
        assert settle is not None
        for _ in range(50):
            results = self.results_of(plan)
            more = settle(observed, plan, results, self.now)
            if more is None:
                self.round.outcome = plan.outcome
                return self.round
            observed, plan = more
        raise AssertionError("not settled after 50 stages")

    def results_of(self, plan: Plan) -> tuple[Result, ...]:
        """Carry out a plan."""
        handlers: Any = {type(action): self for action in plan.actions}
        steps = execute(plan, lambda _cluster: handlers)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            results: tuple[Result, ...] = end.value
            return results


def table_of(given: Mapping[str, Any]) -> Table:
    """The table of a recorded case."""
    data = {f"applicationsetcontroller.{KEYS[key]}": _text(given[key]) for key in KEYS if key in given}
    data.setdefault("applicationsetcontroller.enable.policy.override", "true")
    data |= {f"applicationsetcontroller.{LISTS[key]}": ",".join(given[key]) for key in LISTS if given.get(key)}
    metadata = {"name": "argocd-cmd-params-cm", "namespace": CONTROL}
    parameters = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Table([*at_now(given.get("objects") or []), parameters], given.get("Fail") or {}, World(given))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
