"""Executes sync actions as requests to the destination's API.

``assembly`` registers it for every action of :mod:`syncline.apply.actions`; the executor drives it. It turns one action
into requests and returns an :class:`~syncline.gitops.sync.model.Outcome`: a refusal is data and never stops the other
actions of a step. Without a response there is no outcome: Unanswered is raised. It never decides what to do. Messages
are kubectl's.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeAlias, assert_never

from syncline.apply.actions import (
    AfterWave,
    ApplyMode,
    ApplyObject,
    DeleteHook,
    DryRun,
    PruneObject,
    ReadObject,
    RemoveHookFinalizer,
    SyncAction,
)
from syncline.apply.annotations import HOOK_FINALIZER, OPERATION
from syncline.apply.applied import Applied
from syncline.apply.change import Change, classify_change
from syncline.apply.last_applied import apply_patch, with_last_applied
from syncline.apply.outcome import Outcome, Refusal, WaitKind
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    Unanswered,
    Unavailable,
)
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GVK,
    Obj,
    ObjectRef,
    ResourceInfo,
    annotations_of,
    finalizers,
    gvk_of,
    is_terminating,
    meta,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.kube.patching.managedfields import upgrade_managed_fields
from syncline.kube.schema.model import schema_for

FIELD_MANAGER = "argocd-controller"
"""Upstream's field manager, so that ownership carries over in both directions."""
CONFLICT_TRIES = 5
"""Attempts of a write that meets a newer object."""
SYNC_ACTIONS: tuple[type, ...] = (
    ApplyObject,
    DryRun,
    PruneObject,
    DeleteHook,
    RemoveHookFinalizer,
    ReadObject,
    AfterWave,
)

Requests: TypeAlias = Generator[Request, Response, Outcome]
_DRY = " (dry run)"
NO_ACCOUNT_YET = 'serviceaccount "default" not found'
"""The API's message for pods in a namespace without its default service account."""
NO_RIGHTS = (" cannot ", "attempting to grant RBAC permissions")
"""The messages of authorization, and of RBAC's escalation check."""
_NAMELESS = re.compile(r'\s*"" is invalid: patch: Invalid value: (?:"(?:[^"\\]|\\.)*"|\{\S*\}): (?P<why>.*)', re.DOTALL)
"""The API's message for a patched object that does not fit its kind."""
ADMISSION = ("admission webhook ", "failed calling webhook", "ValidatingAdmissionPolicy ", "MutatingAdmissionPolicy ")
"""The start of refusals by webhooks and policies, whatever their code."""


class SyncHandler:
    """Performs all sync actions against one destination, whose kinds ``mapper`` knows."""

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper
        self._applied = Applied(FIELD_MANAGER)

    def handle(self, action: SyncAction) -> Requests:
        try:
            return (yield from self._handle(action))
        except Unanswered:
            raise  # nothing was decided about the object, so the reconcile is repeated
        except NotFound as error:
            return Outcome(False, str(error), not_found=True, refusal=Refusal.STATE)
        except ApiError as error:
            return Outcome(False, str(error), pending=_soon(error), refusal=_refusal(error))

    def _handle(self, action: SyncAction) -> Requests:
        if isinstance(action, AfterWave):
            return Outcome(True)
        gvk = _gvk(action)
        info = self._mapper.find(gvk)
        if info is None:
            return _unknown_kind(action, gvk)
        match action:
            case ApplyObject():
                return (yield from _Apply(info, action, self._applied, dry=False).answer())
            case DryRun(of=apply, as_new=as_new):
                return (yield from _Apply(info, apply, self._applied, dry=True).answer(as_new))
            case DeleteHook(ending=True):
                return Outcome(True)
            case PruneObject() | DeleteHook():
                return (yield from _delete(info, action))
            case RemoveHookFinalizer():
                return (yield from _release(info, action))
            case ReadObject(ref=ref):
                answer = yield client.get(info, _place(info, ref), ref.name)
                return Outcome(True, obj=answer.or_raise())
            case _:
                assert_never(action)


def _soon(error: ApiError) -> WaitKind | None:
    """Return a wait if the default service account is missing: a new namespace gets it a moment later, and pods are
    refused until then. Upstream fails the operation and leaves it to a retry."""
    early = isinstance(error, Forbidden) and NO_ACCOUNT_YET in error.message
    return WaitKind.ACCOUNT if early else None


def _refusal(error: ApiError) -> Refusal:
    if isinstance(error, Forbidden) and any(text in error.message for text in NO_RIGHTS):
        return Refusal.RIGHTS
    admission = any(text in error.message for text in ADMISSION)
    return Refusal.STATE if admission or isinstance(error, (Forbidden, NotFound, Unavailable)) else Refusal.CONTENT


def _gvk(action: SyncAction) -> GVK:
    match action:
        case ApplyObject(target=target):
            return gvk_of(target)
        case DryRun(of=apply):
            return gvk_of(apply.target)
        case PruneObject() | DeleteHook() | RemoveHookFinalizer() | ReadObject():
            return action.gvk
        case AfterWave():
            raise AssertionError("a wave has no kind")
        case _:
            assert_never(action)


def _unknown_kind(action: SyncAction, gvk: GVK) -> Outcome:
    message = f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"'
    apply = action.of if isinstance(action, DryRun) else action
    if isinstance(apply, ApplyObject):
        return Outcome(False, message, pending=WaitKind.DEFINITION if apply.kind_may_appear else None)
    return Outcome(False, message, not_found=True)


def _place(info: ResourceInfo, ref: ObjectRef) -> str:
    return ref.namespace if info.namespaced else ""


def _delete(info: ResourceInfo, action: PruneObject | DeleteHook) -> Requests:
    """Delete only the observed object, by uid; another one under its name means that it no longer exists."""
    place = _place(info, action.ref)
    answer = yield client.delete(info, place, action.ref.name, uid=action.uid, propagation=action.propagation)
    try:
        answer.or_raise()
    except Conflict as error:
        return Outcome(False, str(error), not_found=bool(action.uid))
    return Outcome(True)


def _release(info: ResourceInfo, action: RemoveHookFinalizer) -> Requests:
    live = action.live
    why = ""
    for _ in range(CONFLICT_TRIES):
        left = [name for name in finalizers(live) if name != HOOK_FINALIZER]
        if len(left) == len(finalizers(live)):
            return Outcome(True)
        answer = yield client.update(info, _with_meta(live, finalizers=left), field_manager=FIELD_MANAGER)
        try:
            answer.or_raise()
            return Outcome(True)
        except NotFound:
            return Outcome(True)
        except Unavailable as error:  # the hook has ended: an operation that failed here would run it again
            raise Unanswered(error.message) from error
        except ApiError as error:
            why = f"failed to update resource: failed to update resource: {error}"
            if not isinstance(error, Conflict):
                return Outcome(False, why)
        read = yield client.get(info, _place(info, action.ref), action.ref.name)
        if read.status == NotFound.code:
            return Outcome(True)
        live = read.or_raise()
    return Outcome(False, why)


def _with_meta(obj: Obj, **fields: object) -> Obj:
    return {**obj, "metadata": {**meta(obj), **fields}}


class _Apply:
    """The apply of one manifest, real or as dry run."""

    def __init__(self, info: ResourceInfo, action: ApplyObject, applied: Applied, *, dry: bool) -> None:
        self.info = info
        self.action = action
        self.applied = applied
        self.dry = dry
        self.place = _place(info, action.ref)
        target = action.target
        if not info.namespaced:
            target = {**target, "metadata": {k: v for k, v in meta(target).items() if k != "namespace"}}
        self.target: Obj = target
        group = f".{info.group}" if info.group else ""
        self.label = f"{info.kind.lower()}{group}/{name_of(target)}"
        self.validation = "Strict" if action.validate else "Ignore"

    def answer(self, as_new: bool = False) -> Requests:
        """Return the outcome. ``as_new``: see :class:`DryRun`."""
        try:
            return (yield from self.ask() if as_new else self.run())
        except (BadRequest, Invalid, InternalError, Conflict) as error:
            return Outcome(False, self._explained(error), refusal=_refusal(error))

    def run(self) -> Requests:
        action = self.action
        if action.migrate_from:
            moved = yield from self._migrate()
            if not moved.ok:
                return moved
        if action.new and not self.dry and action.mode in (ApplyMode.SERVER_SIDE, ApplyMode.REPLACE):
            live = yield from self._read()
            if live is not None and not self._is_ours(live):
                return self._unseen()
        try:
            match action.mode:
                case ApplyMode.CLIENT_SIDE:
                    return (yield from self._apply())
                case ApplyMode.SERVER_SIDE:
                    return (yield from self._server_side())
                case ApplyMode.REPLACE | ApplyMode.UPDATE:
                    return (yield from self._replace())
                case ApplyMode.CREATE:
                    return (yield from self._create(self.target))
                case ApplyMode.RECREATE:
                    return (yield from self._recreate())
                case _:
                    assert_never(action.mode)
        except (Invalid, Conflict):
            if action.force and not self.dry and action.mode in (ApplyMode.CLIENT_SIDE, ApplyMode.REPLACE):
                return (yield from self._recreate())
            raise

    def ask(self) -> Requests:
        """Dry-run the creation of an object to be deleted first: ``already exists`` means that other checks passed."""
        answer = yield self._post(self.target)
        if answer.status != AlreadyExists.code:
            answer.or_raise()
        return self._done("created")

    def _explained(self, error: ApiError) -> str:
        """Return the error message; for a refused change of an immutable field, with the ways to proceed."""
        if self.action.live is not None and isinstance(error, Invalid):
            classified = classify_change(self.target, self.action.live)
            if classified.change is Change.REFUSE:
                return classified.message
        return self._with_fields(error)

    def _with_fields(self, error: ApiError) -> str:
        """Return the invalid fields by path if the API names none: for a patch it prints the whole object, with the
        values of Secrets."""
        text, schema = str(error), schema_for(self.info.gvk)
        nameless = _NAMELESS.match(text)
        if isinstance(error, Conflict) or (isinstance(error, Invalid) and nameless is None):
            return text
        strict, shown = self.validation == "Strict", self.info.kind != "Secret"
        from syncline.kube.patching.fields import field_problems

        found = field_problems(self.target, schema, values=shown, unknown=strict) if schema is not None else []
        if nameless is None:
            unsaid = [one for one in found if one.partition(":")[0] not in text]
            return f"{text}: {'; '.join(unsaid)}" if unsaid else text
        why = "; ".join(found) or f"the patched object cannot be read: {nameless['why']}"
        return f'{self.info.kind} "{name_of(self.target)}" is invalid: {why}'

    def _done(self, what: str, left: Obj | None = None) -> Outcome:
        """Return the outcome. ``left``: the object as a write left it."""
        return Outcome(True, f"{self.label} {what}{_DRY if self.dry else ''}", obj=None if self.dry else left)

    def _read(self) -> Generator[Request, Response, Obj | None]:
        if not name_of(self.target):
            return None
        answer = yield client.get(self.info, self.place, name_of(self.target))
        return None if answer.status == NotFound.code else dict(answer.or_raise())

    def _post(self, obj: Obj, *, dry: bool = False) -> Request:
        return client.create(
            self.info,
            obj,
            namespace=self.place,
            dry_run=dry or self.dry,
            field_manager=FIELD_MANAGER,
            field_validation=self.validation,
        )

    def _create(self, obj: Obj) -> Requests:
        answer = yield self._post(obj)
        try:
            made = answer.or_raise()
        except AlreadyExists as error:
            live = yield from self._read()
            if live is not None and self._is_ours(live):
                return self._done("created")
            if self.action.mode is ApplyMode.CREATE and OPERATION not in annotations_of(self.target):
                # Replace=true: the object exists, but the comparison did not show it yet.
                return (yield from self._replace())
            return Outcome(False, str(error))
        if not name_of(obj):
            self.label += name_of(made)
        return self._done("created", made)

    def _is_ours(self, live: Obj) -> bool:
        """Return whether this operation created the object, before a crash that lost its results."""
        stamp = annotations_of(self.target).get(OPERATION)
        return stamp is not None and annotations_of(live).get(OPERATION) == stamp

    def _unseen(self) -> Outcome:
        return Outcome(False, f"{self.label} of an earlier operation is not seen yet", pending=WaitKind.DELETION)

    def _apply(self) -> Requests:
        """Apply like ``kubectl apply``: create, or patch the differences of last applied, wanted and live object."""
        if not name_of(self.target):
            generated = meta(self.target).get("generateName") or ""
            if not generated:
                return Outcome(False, "resource name may not be empty: give the manifest a metadata.name")
            return Outcome(False, f"from {generated}: cannot use generate name with apply")
        if self.action.observed:
            found = yield from self._apply_to_observed()
            if found is not None:
                return found
        for last in range(CONFLICT_TRIES):
            live = yield from self._read()
            if live is None:
                return (yield from self._create(with_last_applied(self.target)))
            if self.action.new and not self.dry and not self._is_ours(live):
                return self._unseen()
            kind, patch = apply_patch(gvk_of(self.target), self.target, live)
            if not patch:
                return self._unchanged(live)
            answer = yield self._patch(kind, patch)
            if answer.status != Conflict.code or last == CONFLICT_TRIES - 1:
                return self._kept(answer.or_raise(), "configured")
        raise AssertionError("the last try returns or raises")

    def _apply_to_observed(self) -> Generator[Request, Response, Outcome | None]:
        """As :meth:`_apply` without reading first; None if the live object is not the observed one. A patch contains
        the resourceVersion that it is based on."""
        live = self.action.live
        if live is None:
            answer = yield self._post(with_last_applied(self.target))
            return None if answer.status == AlreadyExists.code else self._kept(answer.or_raise(), "created")
        if self.applied.holds(self.action):
            return self._done("configured" if self.dry else "unchanged")
        kind, patch = apply_patch(gvk_of(self.target), self.target, live)
        if not patch:
            return self._unchanged(live)
        answer = yield self._patch(kind, _with_meta(patch, resourceVersion=resource_version(live)))
        if answer.status in (Conflict.code, NotFound.code):
            return None
        return self._kept(answer.or_raise(), "configured")

    def _unchanged(self, live: Obj) -> Outcome:
        self._note(live)
        return self._done("configured" if self.dry else "unchanged")

    def _kept(self, left: Obj, what: str) -> Outcome:
        self._note(left)
        return self._done(what, left)

    def _note(self, left: Obj) -> None:
        if not self.dry:
            self.applied.note(self.action, left)

    def _patch(self, kind: PatchType, patch: Obj) -> Request:
        return client.patch(
            self.info,
            self.place,
            name_of(self.target),
            kind,
            patch,
            dry_run=self.dry,
            field_manager=FIELD_MANAGER,
            field_validation=self.validation,
        )

    def _server_side(self) -> Requests:
        if self.action.force:
            return Outcome(False, "error validating options: --force cannot be used with --server-side")
        if self.action.observed and not self.action.migrate_from and self.applied.holds(self.action):
            return self._done("serverside-applied")
        answer = yield client.server_side_apply(
            self.info,
            self.target,
            field_manager=FIELD_MANAGER,
            force=True,
            dry_run=self.dry,
            field_validation=self.validation,
        )
        return self._kept(answer.or_raise(), "serverside-applied")

    def _replace(self) -> Requests:
        """PUT with the live resourceVersion; after a conflict, read and replace the newer object."""
        for last in range(CONFLICT_TRIES):
            live = yield from self._read()
            if live is None:
                raise NotFound(f'{self.info.group_resource} "{name_of(self.target)}" not found')
            body = _with_meta(self.target, resourceVersion=resource_version(live))
            answer = yield client.update(
                self.info, body, dry_run=self.dry, field_manager=FIELD_MANAGER, field_validation=self.validation
            )
            if answer.status != Conflict.code or last == CONFLICT_TRIES - 1:
                left = answer.or_raise()
                break
        if self.action.mode is ApplyMode.UPDATE:
            self.label = f"{self.info.kind}/{name_of(self.target)}"
            return self._done("updated", left)
        return self._done("replaced", left)

    def _recreate(self) -> Requests:
        """Delete, wait for the deletion (over several reconciles), create. After a crash it continues.

        Nothing is deleted before the API has accepted the new object in a dry run.
        """
        live = yield from self._read()
        if live is not None and self._is_ours(live):
            return self._done("replaced")
        if live is not None and not is_terminating(live):
            question = yield self._post(self.target, dry=True)
            if question.status != AlreadyExists.code:
                question.or_raise()
            answer = yield client.delete(
                self.info,
                self.place,
                name_of(live),
                uid=uid_of(live),
                propagation=self.action.propagation,
            )
            if answer.status != NotFound.code:
                answer.or_raise()
            live = yield from self._read()
        if live is not None:
            return Outcome(False, f"{self.label} is being deleted first", pending=WaitKind.DELETION)
        made = yield from self._create(with_last_applied(self.target))
        return self._done("replaced", made.obj) if made.ok else made

    def _migrate(self) -> Requests:
        """Move the fields of client-side apply to server-side apply."""
        failure = ""
        for _ in range(CONFLICT_TRIES):
            live = yield from self._read()
            if live is None:
                return Outcome(True)
            moved = upgrade_managed_fields(live, frozenset({self.action.migrate_from}), FIELD_MANAGER)
            body = [
                {"op": "replace", "path": "/metadata/managedFields", "value": meta(moved).get("managedFields", [])},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version(live)},
            ]
            answer = yield client.patch(self.info, self.place, name_of(live), PatchType.JSON, body)
            if answer.ok:
                return Outcome(True)
            try:
                answer.or_raise()
            except Conflict as error:
                failure = str(error)
            except ApiError as error:
                failure = str(error)
                break
        where = ObjectRef(self.info.group, self.info.kind, namespace_of(self.target), name_of(self.target))
        return Outcome(False, f"Failed to perform client-side apply migration for {where}: {failure}")
