"""What the controller remembers of sets between reconciles; all of it can be computed again. Bounded."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeVar

from syncline.appset.generation import Generated
from syncline.appset.observing.observe import REFRESH
from syncline.appset.questions import Answer, Facts, Question
from syncline.kube.objects import Obj, ObjectRef, annotations_of, ref_of, resource_version, uid_of

T = TypeVar("T")
MAX_SETS: Final = 5_000

Generate = Callable[[Obj, Facts], Generated]


@dataclass(frozen=True, slots=True)
class _Made:
    spec: object
    facts: Facts
    answers: Mapping[Question, Answer | None]
    generated: Generated


@dataclass(slots=True)
class Generations:
    """The last generation of each set, which is reused while nothing that it depends on has changed."""

    generate: Generate
    _made: OrderedDict[ObjectRef, _Made] = field(default_factory=OrderedDict)
    _rows: OrderedDict[ObjectRef, Mapping[str, int]] = field(default_factory=OrderedDict)

    def __call__(self, appset: Obj, facts: Facts) -> Generated:
        ref = ref_of(appset)
        known = self._made.get(ref)
        if known is not None and known.spec == appset.get("spec") and _same(known, facts):
            return known.generated
        generated = self.generate(appset, facts)
        used = {question: facts.answers.get(question) for question, _ in generated.asked}
        _put(self._made, ref, _Made(appset.get("spec"), facts, used, generated))
        return generated

    def known(self, ref: ObjectRef) -> Generated | None:
        """Return the last generation, which may be outdated."""
        found = self._made.get(ref)
        return None if found is None else found.generated

    def in_order(self, ref: ObjectRef, generated: Generated) -> None:
        """Remember how many rows each element made when nothing was left to do."""
        counts = Counter(made.row.origin for made in generated.made)
        _put(self._rows, ref, MappingProxyType(dict(counts)))

    def rows_before(self, ref: ObjectRef) -> Mapping[str, int]:
        return self._rows.get(ref, MappingProxyType({}))

    def forget(self, ref: ObjectRef) -> None:
        self._made.pop(ref, None)
        self._rows.pop(ref, None)


def _same(known: _Made, facts: Facts) -> bool:
    """Return whether facts are those of a generation. Answers count as far as they were used, and by identity."""
    if any(facts.answers.get(question) is not answer for question, answer in known.answers.items()):
        return False
    old = known.facts
    return (
        old.clusters is facts.clusters
        and (old.control_namespace, old.projects, old.doublestar, old.hidden)
        == (facts.control_namespace, facts.projects, facts.doublestar, facts.hidden)
        and (old.scm_enabled, old.allowed_scm, old.requeue_s) == (facts.scm_enabled, facts.allowed_scm, facts.requeue_s)
        and _same_objects(old.config_maps, facts.config_maps)
        and old.unread == facts.unread
        and old.decisions.keys() == facts.decisions.keys()
        and all(old.decisions[key] is found for key, found in facts.decisions.items())
    )


def _same_objects(old: Mapping[str, Obj], new: Mapping[str, Obj]) -> bool:
    return old.keys() == new.keys() and all(old[key] is found for key, found in new.items())


def _put(kept: OrderedDict[ObjectRef, T], ref: ObjectRef, value: T) -> None:
    kept.pop(ref, None)
    kept[ref] = value
    while len(kept) > MAX_SETS:
        kept.popitem(last=False)


class Refreshes:
    """Which refresh each set asks for. The annotation has no time, and writes of the status change the version of the
    set: so a request is known by the version in which the annotation arrived."""

    def __init__(self) -> None:
        self._requests: OrderedDict[ObjectRef, str] = OrderedDict()

    def note(self, old: Obj | None, new: Obj | None) -> None:
        """Note one change of a set."""
        if new is None or REFRESH not in annotations_of(new):
            known = new if new is not None else old
            if known is not None:
                self._requests.pop(ref_of(known), None)
        elif old is None or annotations_of(old).get(REFRESH) != annotations_of(new)[REFRESH]:
            _put(self._requests, ref_of(new), f"{uid_of(new)}/{resource_version(new)}")

    def of(self, ref: ObjectRef) -> str:
        return self._requests.get(ref, "")
