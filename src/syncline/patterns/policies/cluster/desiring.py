"""Which objects an object template means, and as what: :class:`Desires`. The rules are upstream's.

A name or namespace that the template does not give comes from the policy's selectors. Templates are resolved once for
all objects, or for each, where they name the object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from syncline.base.action import Purpose, Work
from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK, Obj, ResourceInfo, copied, dig, gvk_of, name_of, namespace_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.patterns.policies.cluster import reasons
from syncline.patterns.policies.cluster.comparing import matches
from syncline.patterns.policies.cluster.reading import AWAY, Access, TooMany
from syncline.patterns.policies.cluster.reasons import Event
from syncline.patterns.policies.cluster.relating import related
from syncline.patterns.policies.cluster.selecting import SelectionError, is_empty, selected_namespaces
from syncline.patterns.policies.templates.asking import Unknown
from syncline.patterns.policies.templates.resolving import Resolved, Rules, Unresolved, resolve
from syncline.patterns.policies.templates.text import MANAGED, has_template

NAMESPACES: Final = GVK("", "v1", "Namespace")
MOST_QUESTIONS: Final = 200
"""Objects and lists that the templates of one object may look up."""
MOST_OBJECTS: Final = 1000
"""Objects that one object template may concern."""
_HAS_NAME: Final = re.compile(r"\.ObjectName\b")
_HAS_NAMESPACE: Final = re.compile(r"\.ObjectNamespace\b")
_HAS_OBJECT: Final = re.compile(r"\.Object\b")


@dataclass(frozen=True, slots=True)
class Template:
    """One entry of ``spec.object-templates``."""

    index: int
    raw: Obj = field(repr=False)

    @property
    def definition(self) -> Obj:
        found = self.raw.get("objectDefinition")
        return found if isinstance(found, dict) else {}

    @property
    def kind_of_compliance(self) -> str:
        return str(self.raw.get("complianceType") or "").lower()

    @property
    def unwanted(self) -> bool:
        return self.kind_of_compliance == "mustnothave"

    @property
    def only(self) -> bool:
        return self.kind_of_compliance == "mustonlyhave"

    @property
    def metadata_only(self) -> bool:
        given = str(self.raw.get("metadataComplianceType") or "").lower()
        return given == "mustonlyhave" if given else self.only

    @property
    def selector(self) -> Obj | None:
        found = self.raw.get("objectSelector")
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a template means. ``event``: why nothing is to be looked at; ``failed``: it shall be tried again by itself;
    ``lasts``: only a change of the policy helps."""

    objects: tuple[Obj, ...] = field(default=(), repr=False)
    info: ResourceInfo | None = None
    event: Event | None = None
    related: tuple[Obj, ...] = ()
    failed: bool = False
    lasts: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Desires:
    """The object templates of one policy. ``rules`` None: their templates are not resolved."""

    policy: Obj = field(repr=False)
    access: Access
    now: datetime
    rules: Rules | None

    def of(self, template: Template) -> Generator[Any, Any, Wanted]:
        """Return what a template means."""
        definition = template.definition
        gvk = gvk_of(definition)
        if not gvk.kind or not gvk.version:
            text = (
                f"The kind and apiVersion fields are required on the object template at index {template.index} in "
                f"policy {name_of(self.policy)}"
            )
            return Wanted(event=Event(False, reasons.DECODE_ERROR, text))
        info = self.access.served_as(gvk)
        if info is None:
            return (yield from self._unserved(template, gvk))
        try:
            places = yield from self._places(template, info)
            if isinstance(places, Wanted):
                return places
            return (yield from self._resolved(template, info, places))
        except AWAY:
            raise
        except (ApiError, TooMany) as error:
            text = f"Error retrieving an object for object-template at index [{template.index}]: {error}"
            return Wanted(info=info, event=Event(False, "api error", text), failed=True)

    def _unserved(self, template: Template, gvk: GVK) -> Generator[Any, Any, Wanted]:
        if self._templated(template):
            context = {"Object": {}, "ObjectNamespace": "", "ObjectName": ""}
            try:
                made = yield from self.resolved(template.definition, context)
            except Unresolved:
                made = Resolved()
            if made.skipped:
                return Wanted(event=_skipped(gvk.kind))
        text = (
            f"couldn't find mapping resource with kind {gvk.kind} in API version {gvk.api_version}, "
            "please check if you have CRD deployed"
        )
        return Wanted(event=Event(False, "K8s error", text), failed=True)

    def _templated(self, template: Template) -> bool:
        return self.rules is not None and has_template(_text(template.definition), MANAGED, encrypted=True)

    # -- namespaces and names ----------------------------------------------------------------------------------------

    def _places(self, template: Template, info: ResourceInfo) -> Generator[Any, Any, Any]:
        """Return the names of objects by namespace, each with the object where a template asks for it; or what stands
        in the way."""
        definition, selector = template.definition, template.selector
        given_namespace, name = namespace_of(definition), name_of(definition)
        by_template = has_template(given_namespace, MANAGED, encrypted=True)
        namespace = "" if by_template else given_namespace
        name = "" if has_template(name, MANAGED, encrypted=True) else name
        if not info.namespaced:
            spaces = [""]
        elif namespace:
            spaces = [namespace]
        else:
            found = yield from self._namespaces(info)
            if isinstance(found, Wanted):
                return found
            spaces = found or ([""] if by_template else [])
        if not spaces:
            return _no_namespace(name, info, "from the policy namespaceSelector nor the object metadata")
        places: dict[str, dict[str, Obj]] = {one: {name: {}} if name or selector is None else {} for one in spaces}
        needs = _HAS_OBJECT.search(_text(definition)) is not None
        if needs and name and not by_template:
            for one in spaces:
                live = yield from self.access.get(info, one, name)
                places[one] = {name: live or {}}
        elif not name and selector is not None:
            wrong = yield from self._selected(template, info, places, needs)
            if wrong is not None:
                return wrong
        return places

    def _namespaces(self, info: ResourceInfo) -> Generator[Any, Any, Any]:
        selector = dig(self.policy, "spec", "namespaceSelector") or {}
        if is_empty(selector):
            return []
        spaces = self.access.served_as(NAMESPACES)
        if spaces is None:
            return []
        listed = yield from self.access.list(spaces, "")
        try:
            return selected_namespaces(listed, selector)
        except SelectionError as error:
            text = f"Error filtering namespaces with provided namespaceSelector: {error}"
            return Wanted(info=info, event=Event(False, "namespaceSelector error", text), failed=True, lasts=True)

    def _selected(
        self, template: Template, info: ResourceInfo, places: dict[str, dict[str, Obj]], needs: bool
    ) -> Generator[Any, Any, Wanted | None]:
        try:
            text = str(label_selector_from(template.selector))
        except SelectorError as error:
            said = f"Error parsing provided objectSelector in the object-template at index [{template.index}]: {error}"
            return Wanted(info=info, event=Event(False, "objectSelector error", said), failed=True, lasts=True)
        for one, names in places.items():
            try:
                listed = yield from self.access.list(info, one, text)
            except AWAY:
                raise
            except (ApiError, TooMany) as error:
                where = f"object-template at index [{template.index}]"
                said = f"Error listing resources with provided objectSelector in the {where}: {error}"
                return Wanted(info=info, event=Event(False, "objectSelector error", said), failed=True)
            for live in listed:
                names[name_of(live)] = live if needs else {}
        return None

    # -- templates ---------------------------------------------------------------------------------------------------

    def resolved(self, source: Any, context: Mapping[str, Any]) -> Generator[Any, Any, Resolved]:
        """Resolve templates; what they look up is asked for. Raises Unresolved."""
        rules = self.rules or Rules()
        for _ in range(MOST_QUESTIONS):
            run = partial(_attempt, source, context, rules, dict(self.access.answers), self.now)
            label = f"templates of {name_of(self.policy)}"
            made = yield Work(label, run, Purpose.EVALUATION, project=namespace_of(self.policy))
            if isinstance(made, Resolved):
                return made
            yield from self.access.answer(made.question)
        raise Unresolved(f"the templates look up more than {MOST_QUESTIONS} objects and lists", lasts=True)

    def _resolved(
        self, template: Template, info: ResourceInfo, places: Mapping[str, Mapping[str, Obj]]
    ) -> Generator[Any, Any, Wanted]:
        raw = _text(template.definition)
        per_name = bool(_HAS_NAME.search(raw) or _HAS_OBJECT.search(raw))
        per_namespace = bool(_HAS_NAMESPACE.search(raw))
        templated, skipped, sensitive = self._templated(template), False, False
        base: Obj | None = None
        made: list[Obj] = []
        for namespace, names in places.items():
            base = None if per_namespace else base
            for name, live in names.items():
                base = None if per_name else base
                if base is None and templated:
                    try:
                        found = yield from self.resolved(template.definition, _context(live, name, namespace))
                    except Unresolved as error:
                        event = Event(False, reasons.TEMPLATE_ERROR, str(error))
                        return Wanted(info=info, event=event, failed=not error.lasts, lasts=error.lasts)
                    if found.skipped:
                        skipped = True
                        continue
                    sensitive |= found.sensitive
                    base = found.value if isinstance(found.value, dict) else {}
                elif base is None:
                    base = template.definition
                one = _placed(base, name, namespace)
                wrong = self._misplaced(template, info, one, name, namespace)
                if wrong is not None:
                    return Wanted(info=info, event=wrong)
                made.append(one)
                if len(made) > MOST_OBJECTS:
                    said = f"the object template at index [{template.index}] concerns more than {MOST_OBJECTS} objects"
                    return Wanted(info=info, event=Event(False, reasons.TEMPLATE_ERROR, said))
        if not made:
            return Wanted(info=info, event=_nothing(template, info.kind, skipped))
        wanted = Wanted(tuple(made), info, sensitive=sensitive)
        if template.unwanted and template.selector is not None and not name_of(template.definition):
            return (yield from self._unwanted(template, wanted, places))
        return wanted

    def _misplaced(self, template: Template, info: ResourceInfo, made: Obj, name: str, namespace: str) -> Event | None:
        if gvk_of(made).kind == "":
            text = (
                "Decoding error, please check your policy file! Aborting handling the object template at index "
                f"[{template.index}] in policy `{name_of(self.policy)}` with error = `Object 'Kind' is missing`"
            )
            return Event(False, reasons.DECODE_ERROR, text)
        selects = not is_empty(dig(self.policy, "spec", "namespaceSelector") or {})
        if info.namespaced and selects and namespace_of(made) != namespace:
            text = "The object definition's namespace must match the result from the namespace selector after template"
            return Event(False, reasons.TEMPLATE_ERROR, f"{text} resolution")
        if info.namespaced and not namespace_of(made):
            return _no_namespace(name, info, "after template resolution", reasons.TEMPLATE_ERROR).event
        if template.selector is not None and name_of(made) != name:
            text = "The object definition's name must match the result from the object selector after template"
            return Event(False, reasons.TEMPLATE_ERROR, f"{text} resolution")
        return None

    def _unwanted(
        self, template: Template, wanted: Wanted, places: Mapping[str, Mapping[str, Obj]]
    ) -> Generator[Any, Any, Wanted]:
        """Keep the selected objects that are as the template says: those are not wanted."""
        info = wanted.info
        assert info is not None, "only objects of kinds that are served get here"
        kept = []
        for one in wanted.objects:
            live = yield from self.access.get(info, namespace_of(one), name_of(one))
            if live is not None and matches(one, live, only=False):
                kept.append(one)
        if kept:
            return replace(wanted, objects=tuple(kept))
        spaces = sorted(places)
        where = f"namespace{'s:' if len(spaces) > 1 else ''} {', '.join(spaces)}"
        found = tuple(
            related(info, info.kind, space, name, True, "", None) for space, names in places.items() for name in names
        )
        event = Event(True, "", f"{info.plural} missing as expected in {where}")
        return Wanted(info=info, event=event, related=found)


def _attempt(source: Any, context: Mapping[str, Any], rules: Rules, answers: Any, now: datetime) -> Resolved | Unknown:
    try:
        return resolve(source, context, rules, answers, now)
    except Unknown as unknown:
        return unknown


def _text(definition: Obj) -> str:
    return json.dumps(definition, ensure_ascii=False)


def _context(live: Obj, name: str, namespace: str) -> Obj:
    plain = {**live, "metadata": {key: one for key, one in (live.get("metadata") or {}).items() if key != MANAGERS}}
    known: Obj = {"Object": plain if live else {}, "ObjectName": name} if name else {}
    return known | ({"ObjectNamespace": namespace} if namespace else {})


MANAGERS: Final = "managedFields"


def _placed(base: Obj, name: str, namespace: str) -> Obj:
    made: Obj = copied(base)
    metadata = made.get("metadata")
    metadata = made["metadata"] = metadata if isinstance(metadata, dict) else {}
    given_name, given_space = str(metadata.get("name") or name), str(metadata.get("namespace") or namespace)
    for key, value in (("name", given_name.strip()), ("namespace", given_space.strip())):
        if value:
            metadata[key] = value
        else:
            metadata.pop(key, None)
    if isinstance(made.get("kind"), str):
        made["kind"] = made["kind"].strip()
    return made


def _no_namespace(name: str, info: ResourceInfo, where: str, reason: str = "K8s missing namespace") -> Wanted:
    text = f"namespaced object{' ' if name else ''}{name} of kind {info.kind} has no namespace specified {where}"
    return Wanted(info=info, event=Event(False, reason, text))


def _skipped(kind: str) -> Event:
    return Event(True, "", f"All objects of kind {kind} were skipped by the `skipObject` template function")


def _nothing(template: Template, kind: str, skipped: bool) -> Event:
    if skipped:
        return _skipped(kind)
    where = "policy objectSelector" if template.selector is not None else "objectDefinition metadata"
    return Event(True, "", f"No objects of kind {kind} were matched from the {where}")
