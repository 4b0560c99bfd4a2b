"""What is written to one Application: the desired object, and the difference from the live one; pure.

Rules: ``createOrUpdateInCluster`` and ``CreateOrUpdate`` of upstream (reference argocd-applicationset §2). Both sides
are compared as upstream's types write them, without what ``ignoreApplicationDifferences`` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.apply.diff.jq import Answers, JqQuestion, Overran, Rule, Unreadable, without
from syncline.argo.application import HYDRATE, REFRESH
from syncline.argo.typed import normalized_spec, typed_application
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    finalizers,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    split_api_version,
    uid_of,
)
from syncline.kube.patching.patches import create_merge_patch
from syncline.kube.schema.extensions import EXTENSIONS

KEPT_ANNOTATIONS: Final = ("notified.notifications.argoproj.io", REFRESH, HYDRATE)
KEPT_FINALIZERS: Final = ("pre-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io")
"""Kept on a live Application, also with a suffix."""
OURS: Final = "syncline.dev/"
"""Annotations with this prefix stay where our other controllers, or people, put them on Applications."""
WRITTEN: Final = frozenset(OURS + one.name for one in EXTENSIONS if one.ours)
"""Those of them that controllers write; the others come from templates and people."""
MARK: Final = "syncline.dev/deletion-confirmed"
"""The only one of them that a set writes: its deletion was confirmed with this hash. An Application that is generated
loses it."""


class WriteError(ValueError):
    """An Application may not be written, or not compared; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """``ignoreApplicationDifferences`` of a set: rules by name of the Application (empty: all), and known results."""

    rules: tuple[tuple[str, Rule], ...] = ()
    answers: Answers = field(default_factory=Answers, repr=False)

    @classmethod
    def of(cls, appset: Obj, answers: Answers) -> Ignored:
        found = dig(appset, "spec", "ignoreApplicationDifferences", default=[]) or []
        rules = tuple(
            (str(one.get("name") or ""), (_texts(one, "jsonPointers"), _texts(one, "jqPathExpressions")))
            for one in found
            if isinstance(one, dict)
        )
        return cls(rules, answers)

    def rules_of(self, name: str) -> tuple[Rule, ...]:
        return tuple(rule for wanted, rule in self.rules if wanted in ("", name))


def _texts(one: Obj, key: str) -> tuple[str, ...]:
    found = one.get(key)
    return tuple(str(text) for text in found) if isinstance(found, list) else ()


@dataclass(frozen=True, slots=True)
class Kept:
    """Keys that are kept on live Applications although they are not generated."""

    annotations: tuple[str, ...]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, appset: Obj, everywhere: Mapping[str, tuple[str, ...]]) -> Kept:
        asked = dig(appset, "spec", "preservedFields", default={}) or {}
        annotations = (*_texts(asked, "annotations"), *everywhere.get("annotations", ()), *KEPT_ANNOTATIONS)
        return cls(annotations, (*_texts(asked, "labels"), *everywhere.get("labels", ())))


def owner_of(appset: Obj) -> Obj:
    """Return the owner reference to a set."""
    return {
        "apiVersion": APPLICATION_SET.api_version,
        "kind": APPLICATION_SET.kind,
        "name": name_of(appset),
        "uid": uid_of(appset),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_owner(reference: Obj, appset_name: str) -> bool:
    """Return whether a reference names a set. As upstream, its uid does not count."""
    group, _ = split_api_version(str(reference.get("apiVersion") or ""))
    named = reference.get("kind"), reference.get("name")
    return group == APPLICATION_SET.group and named == (APPLICATION_SET.kind, appset_name)


def claimed(live: Obj, appset: Obj) -> list[Obj]:
    """Return the owner references of an Application after the set controls it. Raises :class:`WriteError` if another
    owner does."""
    references = owner_references(live)
    controller = next((one for one in references if one.get("controller")), None)
    if controller is not None and not is_owner(controller, name_of(appset)):
        raise WriteError(
            f"error while wrapping using MutateFn: Object {namespace_of(live)}/{name_of(live)} is already owned by "
            f"another {controller.get('kind')} controller {controller.get('name')}"
        )
    own = owner_of(appset)
    if not any(is_owner(one, name_of(appset)) for one in references):
        return [*references, own]
    return [own if is_owner(one, name_of(appset)) else one for one in references]


def created(made: Obj, appset: Obj, operation: Obj | None = None) -> Obj:
    """Return the object to create for a generated Application."""
    named = {"name": name_of(made), "namespace": namespace_of(appset)}
    lists = {"labels": labels_of(made), "annotations": annotations_of(made), "finalizers": finalizers(made)}
    owners = {"ownerReferences": [owner_of(appset)]}
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {**named, **{key: value for key, value in lists.items() if value}, **owners},
        "spec": normalized_spec(made.get("spec") or {}),
        **({"operation": operation} if operation is not None else {}),
    }


def desired(made: Obj, live: Obj, appset: Obj, kept: Kept, operation: Obj | None = None) -> Obj:
    """Return the live Application as the set wants it. Raises :class:`WriteError` if another owner controls it."""
    known = annotations_of(live)
    ours = {key: value for key, value in known.items() if key.startswith(OURS) and key != MARK}
    if gone := [key for key in ours if key not in annotations_of(made) and key not in WRITTEN]:
        own = _own_annotations(live)
        ours = {key: value for key, value in ours.items() if key not in gone or key not in own}
    annotations = ours | annotations_of(made) | _kept(known, kept.annotations)
    labels = labels_of(made) | _kept(labels_of(live), kept.labels)
    guards = finalizers(made)
    for prefix in KEPT_FINALIZERS:
        guards += [one for one in finalizers(live) if one.startswith(prefix) and one not in guards]
    metadata = {
        **live["metadata"],
        "annotations": annotations,
        "labels": labels,
        "finalizers": guards,
        "ownerReferences": claimed(live, appset),
    }
    return {
        **live,
        "metadata": metadata,
        "spec": normalized_spec(made.get("spec") or {}),
        **({"operation": operation} if operation is not None else {}),
    }


def _own_annotations(live: Obj) -> set[str]:
    """Return the annotations of an Application that only its set has written: by managedFields, the manager that wrote
    its owner reference. Once the template lacks them they go."""
    writers: dict[str, set[str]] = {}
    owning: set[str] = set()
    for entry in dig(live, "metadata", "managedFields") or ():
        fields = dig(entry, "fieldsV1", "f:metadata") or {}
        manager = str(entry.get("manager"))
        if "f:ownerReferences" in fields:
            owning.add(manager)
        for key in fields.get("f:annotations") or ():
            writers.setdefault(key.removeprefix("f:"), set()).add(manager)
    return {key for key, managers in writers.items() if managers <= owning}


def _kept(live: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: live[key] for key in keys if key in live}


def difference(live: Obj, wanted: Obj, ignored: Ignored) -> Obj:
    """Return the merge patch that makes ``live`` as ``wanted``; empty if they are equal. Raises :class:`WriteError` if
    an expression fails, and Unknown if it was not evaluated yet."""
    rules = ignored.rules_of(name_of(live))
    before, after = _normal(live), _normal(wanted)
    if rules:
        before, bare = (_without(one, rules, ignored.answers) for one in (before, after))
        names = {key: after["metadata"][key] for key in ("name", "namespace") if key in after["metadata"]}
        after = {**bare, **names_of(bare, names), **({"operation": after["operation"]} if "operation" in after else {})}
        before, after = _normal(before), _normal(after)
    return create_merge_patch(_written(before), _written(after))


def names_of(app: Obj, names: Mapping[str, Any]) -> Obj:
    return {"metadata": {**(app.get("metadata") or {}), **names}}


def specs_differ(live: Obj, spec: Obj, ignored: Ignored) -> bool:
    """Return whether a wanted ``spec`` differs from that of a live Application, as :func:`difference` compares. An
    expression that fails is no difference: it would be one for ever."""
    try:
        return "spec" in difference(live, {**live, "spec": spec}, ignored)
    except WriteError:
        return False


def _normal(app: Obj) -> Obj:
    made = typed_application(app)
    return {**made, "spec": normalized_spec(app.get("spec") or {})}


def _written(app: Obj) -> Obj:
    """Return the parts that the controller writes."""
    fields = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences")
    metadata = {key: value for key, value in app["metadata"].items() if key in fields}
    return {"metadata": metadata, **{key: app[key] for key in ("spec", "operation") if key in app}}


def _addressable(app: Obj, rules: tuple[Rule, ...]) -> Obj:
    """Return the parts that rules may address. The status is one only if a rule names it: it changes all the time, and
    each change would be evaluated again."""
    named = any("status" in text for parts in rules for texts in parts for text in texts)
    status = {"status": app["status"]} if named and "status" in app else {}
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, **_written(app), **status}


def _without(app: Obj, rules: tuple[Rule, ...], answers: Answers) -> Obj:
    """Return ``app`` without the fields that the rules address."""
    typed = _addressable(app, rules)
    question = JqQuestion(rules, typed)
    if not question.expressions:
        return without(typed, rules, lambda _expression, _obj: None)
    found = answers.of(question)
    if isinstance(found, Overran | Unreadable):
        why = found.why if isinstance(found, Unreadable) else str(found)
        raise WriteError(
            "failed to apply ignore differences: failed to normalize application spec: "
            f"failed to create diff normalizer: {why}"
        )
    trees = iter(found.trees)
    return without(typed, rules, lambda _expression, _obj: next(trees))
