"""OperatorGroups: the namespaces that they select, the APIs that their operators provide, and whether two of them
provide the same API in the same namespace (``ReconcileAPIIntersection``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of, namespace_of
from syncline.kube.selectors import label_selector_from
from syncline.patterns.operators.names import (
    ALL_NAMESPACES,
    OPERATOR_GROUP,
    OPERATOR_NAMESPACE,
    PROVIDED_APIS,
    TARGET_NAMESPACES,
)

FAIL_FORWARD = "TechPreviewUnsafeFailForward"
MULTIPLE = "MultipleOperatorGroups"
NO_ACCOUNT = "OperatorGroupServiceAccount"


class Api(NamedTuple):
    """A kind that an operator provides or requires."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.version}.{self.group}"


Apis = frozenset[Api]


class Intersection(Enum):
    """What the APIs of an operator mean for its group."""

    ADD = "add"
    REMOVE = "remove"
    CONFLICT = "conflict"
    NONE = "none"


def read_apis(text: str) -> Apis:
    """Read an annotation ``Kind.version.group,…``; parts with fewer than two dots are left out."""
    parts = (part.split(".", 2) for part in text.replace(" ", "").split(","))
    return frozenset(Api(part[2], part[1], part[0]) for part in parts if len(part) == 3)


def print_apis(apis: Iterable[Api]) -> str:
    return ",".join(sorted(str(api) for api in apis))


def provided_apis(csv: Obj) -> Apis:
    """Return the kinds that a ClusterServiceVersion owns."""
    owned = dig(csv, "spec", "customresourcedefinitions", "owned", default=None) or ()
    served = dig(csv, "spec", "apiservicedefinitions", "owned", default=None) or ()
    defined = (Api(_group(one), str(one.get("version") or ""), str(one.get("kind") or "")) for one in owned)
    aggregated = (Api(*(str(one.get(part) or "") for part in ("group", "version", "kind"))) for one in served)
    return frozenset((*defined, *aggregated))


def _group(description: Obj) -> str:
    """Return the group of a described definition, whose name is ``plural.group``."""
    return str(description.get("name") or "").partition(".")[2]


def targets_of(group: Obj) -> tuple[str, ...]:
    """Return the namespaces in a group's status."""
    return tuple(dig(group, "status", "namespaces", default=None) or ())


def printed_targets(group: Obj) -> str:
    return ",".join(sorted(targets_of(group)))


def selected_namespaces(group: Obj, namespaces: Mapping[str, Obj]) -> tuple[str, ...]:
    """Return the namespaces that a group selects now, in order; ``("",)`` means all of them.

    ``targetNamespaces`` counts before the selector; without both, or with an empty selector, it is all namespaces.
    Raises ValueError for a target namespace without a name, and for a selector that cannot be read.
    """
    targets = dig(group, "spec", "targetNamespaces", default=None) or ()
    if targets:
        if ALL_NAMESPACES in targets:
            raise ValueError(f"TargetNamespaces cannot contain NamespaceAll: [{' '.join(targets)}]")
        return tuple(sorted(set(targets)))
    given = dig(group, "spec", "selector", default=None)
    if not given or not (given.get("matchLabels") or given.get("matchExpressions")):
        return (ALL_NAMESPACES,)
    selector = label_selector_from(given)
    return tuple(sorted(name for name, one in namespaces.items() if selector.matches(labels_of(one))))


def fails_forward(group: Obj) -> bool:
    return bool(dig(group, "spec", "upgradeStrategy", default="") == FAIL_FORWARD)


def marks(group: Obj) -> dict[str, str]:
    """Return the annotations that the members of a group get."""
    made = {OPERATOR_NAMESPACE: namespace_of(group), OPERATOR_GROUP: name_of(group)}
    if dig(group, "status", "namespaces", default=None) is not None:
        made[TARGET_NAMESPACES] = printed_targets(group)
    return made


def is_marked(csv: Obj, group: Obj) -> bool:
    """Return whether a ClusterServiceVersion has the annotations of its group; one without targets counts too."""
    found = annotations_of(csv)
    same = found.get(OPERATOR_NAMESPACE) == namespace_of(group) and found.get(OPERATOR_GROUP) == name_of(group)
    return same and found.get(TARGET_NAMESPACES, printed_targets(group)) == printed_targets(group)


@dataclass(frozen=True, slots=True)
class Surface:
    """A group as others meet it."""

    identity: tuple[str, str]
    targets: frozenset[str]
    provided: Apis

    @classmethod
    def of(cls, group: Obj) -> Surface:
        targets = targets_of(group)
        if targets and targets[0] != ALL_NAMESPACES:
            targets = (*targets, namespace_of(group))
        provided = read_apis(annotations_of(group).get(PROVIDED_APIS, ""))
        return cls((namespace_of(group), name_of(group)), frozenset(targets), provided)

    def meets(self, other: Surface) -> bool:
        """Return whether both have a target namespace in common."""
        if not self.targets or not other.targets or self.identity == other.identity:
            return False
        everywhere = frozenset((ALL_NAMESPACES,))
        return everywhere in (self.targets, other.targets) or bool(self.targets & other.targets)


def intersection(provided: Apis, group: Surface, others: Sequence[Surface]) -> Intersection:
    """Return what it means that an operator of ``group`` provides these APIs beside the operators of ``others``."""
    elsewhere = frozenset(api for other in others if group.meets(other) for api in other.provided)
    known, shared = provided <= group.provided, bool(provided & elsewhere)
    if shared:
        return Intersection.REMOVE if known else Intersection.CONFLICT
    return Intersection.NONE if known else Intersection.ADD


def account_of(groups: Sequence[Obj]) -> tuple[Obj | None, str]:
    """Return the service account with whose rights operators of a namespace are installed (None: OLM's own), and why
    that is not known.

    ``groups``: the OperatorGroups of the namespace. Source: ``queryServiceAccountFromNamespace``.
    """
    managing = [group for group in groups if targets_of(group)]
    if not managing:
        return None, "no operator group found that is managing this namespace"
    if len(managing) > 1:
        return None, f"more than one operator group(s) are managing this namespace count={len(managing)}"
    (group,) = managing
    name = str(dig(group, "spec", "serviceAccountName", default="") or "")
    if not name:
        return None, ""
    reference = dig(group, "status", "serviceAccountRef", default=None)
    if not reference:
        where = f"{namespace_of(group)}/{name_of(group)}"
        return None, f"please make sure the service account exists. sa={name} operatorgroup={where}"
    return reference, ""
