"""A private copy of a cluster on which controllers' plans are executed as an API server would. Use :class:`Scratch`.

The copy starts as a snapshot. Controllers' ``observe`` and ``plan`` run on it, their actions change it, and changes
wake the controllers that watch them. It has no side effects: no requests, Events or evictions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.cache import Cache, IndexFn, Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Create, Delete, Emit, Patch, Plan, Replace, SetStatus
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    generation,
    gvk_of,
    is_terminating,
    meta,
    name_of,
    ref_of,
    uid_of,
)
from syncline.kube.patching.managedfields import LAST_APPLIED
from syncline.kube.patching.patches import json_merge_patch
from syncline.kube.patching.threeway import three_way_json_merge
from syncline.machineconfig.ansible.reading import ReadPlaybook
from syncline.machineconfig.impact.admission import Admission

MAX_PASSES = 20_000
"""Maximum reconciles until controllers are idle; beyond it two of them undo each other's work."""
SERVERS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
"""Fields of metadata that the server writes; in a file they are left over from an export."""


class UnsettledError(RuntimeError):
    """The controllers did not become idle, which is a bug in them."""


class Scratch:
    """A copy of a snapshot. ``kinds`` are copied, and count as listed even if the cluster does not serve them."""

    def __init__(
        self,
        snapshot: Snapshot,
        kinds: Iterable[GroupKind],
        indices: Mapping[str, IndexFn],
        controllers: Sequence[Controller[Any]],
    ) -> None:
        self.cache = Cache(snapshot.mapper, indices)
        for kind in kinds:
            self.cache.mark_synced(kind)
            for obj in snapshot.objects(kind):
                self.cache.put(kind, obj)
        self.plans: dict[tuple[str, ObjectRef], Plan] = {}
        """The last plan by controller and object."""
        self.refused: dict[ObjectRef, str] = {}
        """Objects that the API would reject, with the error."""
        self.unknown: list[str] = []
        """Fields of objects that the API would drop."""
        self._admission = Admission(snapshot)
        self._controllers = tuple(controllers)
        self._due: dict[tuple[int, ObjectRef], None] = {}
        self._made = 0

    # -- what people do ----------------------------------------------------------------------------------------

    def apply(self, obj: Obj, now: datetime) -> None:
        """Apply a manifest as ``kubectl apply`` does: fields that only the previous manifest had are removed."""
        ref = ref_of(obj)
        given = {key: value for key, value in obj.items() if key != "status"}
        given["metadata"] = {key: value for key, value in meta(obj).items() if key not in SERVERS}
        live = self.cache.get(ref)
        patch = three_way_json_merge(_last_applied(live), given, live) if live is not None else {}
        if live is None or patch:
            self.put(json_merge_patch(live, patch) if live is not None else given, now)

    def put(self, obj: Obj, now: datetime) -> None:
        """Write the object as it is; one that the API would reject is skipped and noted."""
        live = self.cache.get(ref_of(obj))
        admitted = self._admission.admit(obj, live)
        self.unknown += [f"{obj.get('kind')} {name_of(obj)}: {field}" for field in admitted.unknown]
        if admitted.refused:
            self.refused[ref_of(obj)] = admitted.refused
        elif live is None:
            self._put(admitted.obj | self._born(admitted.obj, now), None)
        elif live != admitted.obj:
            self._put(self._counted(admitted.obj, live), live)

    def delete(self, ref: ObjectRef, now: datetime) -> bool:
        """Delete an object; return False if there is none."""
        live = self.cache.get(ref)
        if live is None:
            return False
        if is_terminating(live):
            return True
        if finalizers(live):
            stamp = {"deletionTimestamp": format_time(now)}
            self._put(live | {"metadata": {**meta(live), **stamp}}, live)
        else:
            self._drop(live)
        return True

    # -- what controllers do -----------------------------------------------------------------------------------

    def settle(self, now: datetime) -> None:
        """Run the controllers on all changes, in their order, until idle."""
        for _ in range(MAX_PASSES):
            key = min(self._due, default=None, key=lambda each: each[0])
            if key is None:
                return
            del self._due[key]
            controller, ref = self._controllers[key[0]], key[1]
            observed = controller.observe(self.cache, ref)
            if observed is None:
                continue
            plan = controller.plan(observed, now)
            self.plans[(controller.name, ref)] = plan
            self.handle(plan.actions, now)
        raise UnsettledError(f"controllers did not come to rest in {MAX_PASSES} passes")

    def handle(self, actions: Iterable[Action], now: datetime) -> None:
        for action in actions:
            match action:
                case Create(obj=obj):
                    if self.cache.get(ref_of(obj)) is None:
                        self._put(obj | self._born(obj, now), None)
                case Replace(obj=obj):
                    self._written(obj, self.cache.get(ref_of(obj)))
                case Patch(body=body):
                    live = self.cache.get(action.target)
                    if live is not None:
                        self._written(json_merge_patch(live, body), live)
                case SetStatus(new=status):
                    live = self.cache.get(action.target)
                    if live is not None:
                        self._put(live | {"status": status}, live)
                case Delete():
                    self.delete(action.target, now)
                case Emit() | ReadPlaybook():
                    pass  # Events have no reader here; what was not read before keeps its last MachineConfig
                case _:
                    raise AssertionError(f"{type(action).__name__} is not carried out on a copy")

    def _written(self, obj: Obj, live: Obj | None) -> None:
        if live is None:
            return
        if is_terminating(obj) and not finalizers(obj):
            self._drop(live)
        else:
            self._put(self._counted(obj, live), live)

    def _born(self, obj: Obj, now: datetime) -> Obj:
        self._made += 1
        stamps = {"uid": f"impact-{self._made}", "resourceVersion": f"{self._made}", "generation": 1}
        return {"metadata": {**meta(obj), **stamps, "creationTimestamp": format_time(now)}}

    def _counted(self, obj: Obj, live: Obj) -> Obj:
        """Increase the generation if the spec changed."""
        if dig(obj, "spec") == dig(live, "spec"):
            return obj
        return obj | {"metadata": {**meta(obj), "generation": generation(live) + 1}}

    def _put(self, obj: Obj, live: Obj | None) -> None:
        kind = gvk_of(obj).group_kind
        self.cache.put(kind, obj)
        self._wake(kind, live, obj)

    def _drop(self, obj: Obj) -> None:
        """Remove an object with all objects that it owns."""
        ref = ref_of(obj)
        self.cache.drop(ref.group_kind, ref.namespace, ref.name)
        self._wake(ref.group_kind, obj, None)
        for owned in self.cache.owned(uid_of(obj)) if uid_of(obj) else ():
            self._drop(owned)

    def _wake(self, kind: GroupKind, old: Obj | None, new: Obj | None) -> None:
        """Queue the keys that a change wakes, as ``control/loop.py`` does."""
        known = new if new is not None else old
        assert known is not None, "something was written"
        for index, controller in enumerate(self._controllers):
            concerns = getattr(controller, "concerns", None)
            if controller.kind == kind and (concerns is None or concerns(old, new)):
                self._due[(index, ref_of(known))] = None
            for watch in controller.watches:
                if watch.kind not in (None, kind) or (watch.when is not None and not watch.when(old, new)):
                    continue
                for state in (old, new):
                    for ref in watch.keys(state, self.cache) if state is not None else ():
                        self._due[(index, ref)] = None


def _last_applied(live: Obj) -> Obj:
    """Return the manifest that was last applied, empty if unknown."""
    text = str(dig(live, "metadata", "annotations", LAST_APPLIED, default="") or "")
    try:
        found: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def kinds_of(controllers: Collection[Controller[Any]]) -> set[GroupKind]:
    """Return all kinds that these controllers read."""
    found = {controller.kind for controller in controllers}
    for controller in controllers:
        found |= {watch.kind for watch in controller.watches if watch.kind is not None} | set(controller.reads)
    return found
