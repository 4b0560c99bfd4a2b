"""Runs sync operations against the embedded cluster, as the application controller would: observe, plan, perform."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests.cluster.world import World
from tests.gitops.sync.pairing import pair_objects

from syncline.apply.handler import SyncHandler
from syncline.control.executor import run_in_place
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.model import OperationPhase, ResultRow, SyncObserved, SyncOptions, SyncPlan
from syncline.gitops.sync.plan import plan_sync, record
from syncline.kube.client import Request, Response
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef, gvk_of, labels_of, ref_of

MAX_PASSES = 60
TRACKED = {"app": "test"}
"""Label of everything that the application under test makes."""


class Died(Exception):
    """The controller is gone."""


class Counting:
    """Passes requests on; dies once, after the answer to write number ``die_after`` is known to the API only."""

    def __init__(self, world: World, die_after: int = 0) -> None:
        self._world = world
        self.writes = 0
        self.die_after = die_after

    def send(self, request: Request) -> Response:
        answer = self._world.transport.send(request)
        if request.method != "GET" and "dryRun" not in request.query:
            self.writes += 1
            if self.writes == self.die_after:
                raise Died
        return answer


class Operator:
    """Operations of one application in namespace ``demo``."""

    def __init__(self, world: World, targets: list[Obj], *, die_after: int = 0, **options: Any) -> None:
        self.world = world
        self.targets = [self._labelled(target) for target in targets]
        self.options = SyncOptions(**{"prune": True, **options})
        self.transport = Counting(world, die_after)
        self.after_pass: Callable[[], None] = lambda: None
        self.plan: SyncPlan | None = None

    def _labelled(self, target: Obj) -> Obj:
        target = copy.deepcopy(target)
        target["metadata"].setdefault("labels", {}).update(TRACKED)
        if gvk_of(target).kind not in ("Namespace", "CustomResourceDefinition"):
            target["metadata"].setdefault("namespace", "demo")
        return target

    def run(self, operation: str = "op-1") -> SyncPlan:
        """One operation to its end; after each pass the world goes on and ``after_pass`` is called."""
        started = self.world.clock.now()
        state: tuple[OperationPhase, str, tuple[ResultRow, ...]] = (OperationPhase.RUNNING, "", ())
        for _ in range(MAX_PASSES):
            try:
                plan = self._pass(started, operation, *state)
            except Died:
                continue
            self.plan = plan
            state = (plan.phase, plan.message, plan.results)
            if plan.phase.completed:
                return plan
            self.world.settle()
            self.after_pass()
            self.world.settle()
        raise AssertionError(f"still {state[0]}: {state[1]}")

    def _pass(
        self, started: datetime, operation: str, phase: OperationPhase, message: str, rows: tuple[ResultRow, ...]
    ) -> SyncPlan:
        mapper = Mapper(run_in_place(discover(), self.world.transport))
        handler = SyncHandler(mapper)
        observed = self._observe(mapper, started, operation)
        observed = replace(observed, phase=phase, message=message, results=rows)
        while not (plan := plan_sync(observed, self.world.clock.now())).ended:
            outcomes = tuple(
                tuple(run_in_place(handler.handle(action), self.transport) for action in step) for step in plan.steps
            )
            observed = record(observed, plan, outcomes)
        return plan

    def _observe(self, mapper: Mapper, started: datetime, operation: str) -> SyncObserved:
        kinds = KindTable({info.gvk: info for info in mapper.versions()})
        live = self._live(mapper)
        paired = pair_objects(self.targets, live, "demo", kinds)
        read = self.world.transport.send(Request("GET", "/api/v1/namespaces/demo"))
        return SyncObserved(
            namespace="demo",
            revision="a1b2c3d4e5f6",
            started_at=started,
            pairs=paired.pairs,
            hooks=paired.hooks,
            kinds=kinds,
            options=self.options,
            namespace_live=read.obj if read.ok else None,
            operation=operation,
        )

    def _live(self, mapper: Mapper) -> dict[ObjectRef, Obj]:
        keys = {ref_of(target) for target in self.targets}
        found: dict[ObjectRef, Obj] = {}
        for info in mapper.all():
            if "list" not in info.verbs or info.group == "events.k8s.io":
                continue
            listed = self.world.transport.send(Request("GET", info.path()))
            for obj in listed.obj.get("items", []) if listed.ok else ():
                obj = {**obj, "apiVersion": info.api_version, "kind": info.kind}
                ref = ref_of(obj)
                generated = "generateName" in obj["metadata"]
                tracked = labels_of(obj).get("app") == "test" and not generated
                if ref in keys or (tracked and not obj["metadata"].get("ownerReferences")):
                    found[ref] = obj
        return found
