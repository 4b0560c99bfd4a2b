"""One object of a policy: is it as wanted, and what is done about it (:class:`Enforcer`). The rules are upstream's; a
difference counts where a dry run of the update changes something."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.kube import client
from syncline.kube.client import Response
from syncline.kube.errors import AlreadyExists, ApiError, BadRequest, Conflict, Invalid, NotFound
from syncline.kube.gotemplate.functions import FunctionError
from syncline.kube.objects import Obj, ResourceInfo, copied, meta, name_of, namespace_of, uid_of
from syncline.kube.selectors import label_selector_from
from syncline.patterns.policies.cluster import reasons
from syncline.patterns.policies.cluster.comparing import Comparison, bare, compare, matches
from syncline.patterns.policies.cluster.desiring import Template
from syncline.patterns.policies.cluster.differing import record_mode, recorded
from syncline.patterns.policies.cluster.reading import AWAY, Access, TooMany
from syncline.patterns.policies.cluster.reasons import Event, ObjectResult, identifier
from syncline.patterns.policies.cluster.relating import UNNAMED, announced, created_by, related
from syncline.patterns.policies.templates.resolving import HIDDEN

MANAGER: Final = "config-policy-controller"
"""Field manager of what policies write, as upstream's."""
TRIES: Final = 4
"""Comparisons of an object that others change meanwhile."""
_STRICT: Final = "Strict"

Steps = Generator[Any, Response, Any]


@dataclass(frozen=True, slots=True)
class Handled:
    """``failed``: it shall be tried again by itself; ``held``: it is still to be made."""

    result: ObjectResult
    related: tuple[Obj, ...] = ()
    failed: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class _Checked:
    """What comparing, and perhaps updating, came to. ``tried``: an update was needed; ``updated``: the object after
    it; ``equal``: a dry run showed that the difference is none."""

    violation: bool
    message: str = ""
    diff: str = ""
    tried: bool = False
    updated: Obj | None = field(default=None, repr=False)
    equal: bool = False
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class Enforcer:
    """One object template on its cluster. ``before``: the related objects of the policy so far."""

    access: Access
    template: Template
    info: ResourceInfo
    enforce: bool
    sensitive: bool = False
    before: tuple[Obj, ...] = ()
    hold: bool = False

    def handle(self, wanted: Obj) -> Generator[Any, Any, Handled]:
        """Look at the objects that ``wanted`` stands for."""
        try:
            if name_of(wanted):
                live = yield from self.access.get(self.info, namespace_of(wanted), name_of(wanted))
                return (yield from self._single(wanted, name_of(wanted), live, self.enforce))
            return (yield from self._unnamed(wanted))
        except AWAY:
            raise
        except (ApiError, TooMany, FunctionError) as error:
            names = tuple(filter(None, (name_of(wanted),)))
            text = f"Error retrieving an object for object-template at index [{self.template.index}]: {error}"
            return Handled(ObjectResult(names, (Event(False, "api error", text),)), failed=True)

    # -- without a name: whatever is like it -------------------------------------------------------------------------

    def _unnamed(self, wanted: Obj) -> Generator[Any, Any, Handled]:
        namespace, unwanted = namespace_of(wanted), self.template.unwanted
        listed = yield from self.access.list(self.info, namespace, _selector_text(self.template))
        found = [one for one in listed if matches(wanted, one, self.template.only)]
        if len(found) == 1:
            return (yield from self._single(wanted, name_of(found[0]), found[0], enforce=False))
        compliant = bool(found) != unwanted
        if found:
            reason = reasons.UNWANTED if unwanted else reasons.EXISTS
        elif unwanted:
            reason = reasons.ABSENT
        else:
            reason = reasons.NO_MATCH if listed else reasons.MISSING
        names = tuple(map(name_of, found))
        entries = (self._related(namespace, one, compliant, reason, None) for one in names or (UNNAMED,))
        return Handled(ObjectResult(names, (Event(compliant, reason),)), tuple(entries))

    def _related(self, namespace: str, name: str, compliant: bool, reason: str, properties: Obj | None) -> Obj:
        return related(self.info, self.info.kind, namespace, name, compliant, reason, properties)

    # -- one object --------------------------------------------------------------------------------------------------

    def _single(self, wanted: Obj, name: str, live: Obj | None, enforce: bool) -> Generator[Any, Any, Handled]:
        properties: Obj | None = None
        failed = held = False
        if self.template.unwanted:
            if live is None:
                events = [Event(True, reasons.ABSENT)]
            elif enforce:
                event, failed = yield from self._delete(name, live)
                events = [event]
            else:
                events = [Event(False, reasons.UNWANTED)]
        elif live is None:
            events = [Event(False, reasons.MISSING)]
            if enforce and self.hold:
                properties, held = {"createdByPolicy": True}, True
            elif enforce:
                event, properties, failed = yield from self._create(wanted)
                events.append(event)
        else:
            events, properties, failed = yield from self._check(wanted, name, live, enforce)
        last = events[-1]
        entry = self._related(namespace_of(wanted), name, last.compliant, last.reason, properties)
        return Handled(ObjectResult((name,), tuple(events)), (entry,), failed, held)

    def _create(self, wanted: Obj) -> Steps:
        what = f"{self.info.plural} {identifier([name_of(wanted)], self._place(wanted))}"
        answer = yield client.create(self.info, wanted, field_manager=MANAGER, field_validation=_STRICT)
        try:
            made: Obj = answer.or_raise()
        except AWAY:
            raise
        except ApiError as error:
            text = f"{what} is missing, and cannot be created, reason: `{self._said(error)}`"
            return Event(False, reasons.CREATION_ERROR, text), None, not isinstance(error, Invalid)
        properties: Obj = {"createdByPolicy": True, "uid": uid_of(made)}
        said = f"{what} was created successfully"
        if "status" in wanted:
            more = ", the status of the object will be verified in the next evaluation"
            return Event(False, f"{reasons.CREATED}, status unchecked", said + more), properties, False
        return Event(True, reasons.CREATED, said), properties, False

    def _delete(self, name: str, live: Obj) -> Steps:
        answer = yield client.delete(self.info, self._place(live), name, uid=uid_of(live))
        what = f"{self.info.plural} {identifier([name], self._place(live))}"
        try:
            if answer.status != NotFound.code:
                answer.or_raise()
        except AWAY:
            raise
        except ApiError as error:
            text = f"{what} exists, and cannot be deleted, reason: `{error}`"
            return Event(False, reasons.DELETION_ERROR, text), True
        return Event(True, reasons.DELETED, f"{what} was deleted successfully"), False

    def _place(self, obj: Obj) -> str:
        return namespace_of(obj) if self.info.namespaced else ""

    # -- an object that is there -------------------------------------------------------------------------------------

    def _check(self, wanted: Obj, name: str, live: Obj, enforce: bool) -> Steps:
        found: _Checked = yield from self._checked(wanted, name, live, enforce)
        uid, created = uid_of(live), self._made(live)
        if found.updated is not None and uid_of(found.updated) != uid:
            created = created_by(self.before, uid) if found.recreated else True
            uid = uid_of(found.updated)
        events = []
        if found.tried and not found.message.startswith("Error validating the object"):
            events.append(Event(False, reasons.NO_MATCH))
        if found.violation:
            reason = reasons.UPDATE_ERROR if found.message else reasons.NO_MATCH
            events.append(Event(False, reason, found.message))
        else:
            done = found.updated is not None and enforce
            events.append(Event(True, reasons.UPDATED if done else reasons.EXISTS))
        properties: Obj = {
            "createdByPolicy": created,
            "uid": uid,
            "diff": found.diff,
            "matchesAfterDryRun": found.equal,
        }
        return events, properties, bool(found.message) and enforce

    def _made(self, live: Obj) -> bool:
        """Return whether the policy noted that it was about to make this object, and it was made by policies."""
        place = self._place(live)
        if not announced(self.before, self.info, place, name_of(live)):
            return False
        created = meta(live).get("creationTimestamp")
        first = {one.get("manager") for one in meta(live).get("managedFields") or () if one.get("time") == created}
        return first == {MANAGER}

    def _checked(self, wanted: Obj, name: str, live: Obj, enforce: bool) -> Steps:
        for left in reversed(range(TRIES)):
            try:
                return (yield from self._once(wanted, name, live, enforce))
            except Conflict as error:
                if not left:
                    return _Checked(True, f"{self._prefix(wanted, name)} failed to update with the error `{error}`")
                again = yield from self.access.get(self.info, namespace_of(live), name)
                if again is None:
                    return _Checked(True, f"`{self.info.kind}` is not present and must be created", tried=True)
                live = again
        raise AssertionError("the last try returns")

    def _once(self, wanted: Obj, name: str, live: Obj, enforce: bool) -> Steps:
        template = self.template
        found = compare(wanted, live, template.only, template.metadata_only)
        if found.error:
            return _Checked(True, HIDDEN if self.sensitive else found.error, tried=True)
        mode = record_mode(str(template.raw.get("recordDiff") or ""), self.info.group_kind, self.sensitive)
        plain = bare(live)
        status_diff = recorded(mode, plain, bare(found.merged)) if found.status else ""
        if not found.differs and not found.lacking:
            return _Checked(found.status, diff=status_diff)
        answer = yield client.update(
            self.info, found.merged, dry_run=True, field_manager=MANAGER, field_validation=_STRICT
        )
        recreate = False
        try:
            after = bare(answer.or_raise())
        except (*AWAY, Conflict):
            raise
        except Invalid:
            allowed = template.raw.get("recreateOption") in ("Always", "IfRequired")
            diff = recorded(mode, plain, bare(found.merged))
            if not enforce or not allowed:
                return _Checked(True, self._immutable(wanted, name) if enforce else "", diff)
            recreate = True
        except ApiError as error:
            text = f"Error issuing a dry run update request for the object `{name}`, the error is `{self._said(error)}`"
            return _Checked(True, self._refused(error, name) or text, tried=found.differs)
        else:
            if _content(after) == _content(plain):
                if found.status:
                    return _Checked(True, diff=status_diff, tried=found.differs)
                return _Checked(False, equal=True)
            diff = recorded(mode, plain, after)
        if not enforce:
            return _Checked(True, diff=diff)
        if recreate or template.raw.get("recreateOption") == "Always":
            return (yield from self._recreate(wanted, name, live, found, diff))
        return (yield from self._update(wanted, name, found, diff))

    def _update(self, wanted: Obj, name: str, found: Comparison, diff: str) -> Steps:
        answer = yield client.update(self.info, found.merged, field_manager=MANAGER, field_validation=_STRICT)
        try:
            return _Checked(found.status, diff=diff, tried=found.differs, updated=answer.or_raise())
        except (*AWAY, Conflict):
            raise
        except ApiError as error:
            text = f"{self._prefix(wanted, name)} failed to update with the error `{self._said(error)}`"
            return _Checked(True, self._refused(error, name) or text, diff, tried=found.differs)

    def _recreate(self, wanted: Obj, name: str, live: Obj, found: Comparison, diff: str) -> Steps:
        answer = yield client.delete(self.info, self._place(live), name, uid=uid_of(live))
        prefix = self._prefix(wanted, name)
        try:
            if answer.status != NotFound.code:
                answer.or_raise()
        except (*AWAY, Conflict):
            raise
        except ApiError as error:
            text = f"{prefix} failed to delete when recreating with the error {error}"
            return _Checked(True, text, tried=found.differs)
        made = yield client.create(self.info, wanted, field_manager=MANAGER)
        try:
            after: Obj = made.or_raise()
        except AWAY:
            raise
        except AlreadyExists:
            text = f"{prefix} timed out waiting for the object to delete during recreate, will retry on the next policy"
            return _Checked(True, f"{text} evaluation", tried=found.differs)
        except ApiError as error:
            text = f"{prefix} failed to recreate with the error `{self._said(error)}`"
            return _Checked(True, self._refused(error, name) or text, diff, tried=found.differs)
        return _Checked(found.status, diff=diff, tried=found.differs, updated=after, recreated=True)

    def _prefix(self, wanted: Obj, name: str) -> str:
        where = f" in namespace {namespace_of(wanted)}" if self.info.namespaced else ""
        return f"{self.info.plural} [{name}]{where}"

    def _immutable(self, wanted: Obj, name: str) -> str:
        return (
            f"{self._prefix(wanted, name)} cannot be updated, likely due to immutable fields not matching, "
            'you may set spec["object-templates"][].recreateOption to recreate the object'
        )

    def _refused(self, error: ApiError, name: str) -> str:
        if isinstance(error, NotFound):
            return f"`{self.info.kind}` is not present and must be created"
        if isinstance(error, BadRequest) and "strict decoding error:" in str(error):
            return f"Error validating the object {name}, the error is `{self._said(error)}`"
        return ""

    def _said(self, error: ApiError) -> str:
        """Return what the API says, which quotes values of the object: not those that come from Secrets."""
        return f"{error.reason}: {HIDDEN}" if self.sensitive else str(error)


def _selector_text(template: Template) -> str:
    return str(label_selector_from(template.selector)) if template.selector is not None else ""


def _content(obj: Obj) -> Obj:
    made: Obj = copied(obj)
    made["metadata"] = {key: one for key, one in meta(made).items() if key != "resourceVersion"}
    return made
