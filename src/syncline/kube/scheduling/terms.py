"""The small languages inside a pod's spec that say where it may run: tolerations, node terms, pod terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.kube.selectors import Selector, label_selector_from


def tolerates(tolerations: Iterable[Obj], taint: Obj) -> bool:
    """One toleration matches the taint by effect, key and operator (core/v1 ``ToleratesTaint``)."""
    return any(_tolerates_one(toleration, taint) for toleration in tolerations)


def _tolerates_one(toleration: Obj, taint: Obj) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
        case "Lt" | "Gt" as operator:
            return _compares(str(operator), taint.get("value"), toleration.get("value"))
        case _:
            return False


def _compares(operator: str, left: object, right: object) -> bool:
    """Integer comparison; anything that is no integer does not match."""
    try:
        one, other = int(str(left)), int(str(right))
    except ValueError:
        return False
    return one < other if operator == "Lt" else one > other


def tolerates_all(tolerations: Sequence[Obj], taints: Iterable[Obj], effects: tuple[str, ...]) -> bool:
    """No taint of these effects is left untolerated."""
    return all(tolerates(tolerations, taint) for taint in taints if taint.get("effect") in effects)


def matches_node_terms(spec: Obj, node: Obj) -> bool:
    """``nodeSelector`` and required node affinity: every label, and one of the terms."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    terms = _required_node_terms(spec)
    return terms is None or any(Term.node_term_matches(term, node) for term in terms)


def _required_node_terms(spec: Obj) -> list[Obj] | None:
    required = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required.get("nodeSelectorTerms") or [])


def pinned_names(pod: Obj) -> set[str] | None:
    """The nodes a pod is pinned to by name in every term (as DaemonSets do); None: it is not pinned."""
    terms = _required_node_terms(pod.get("spec") or {})
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        pinned = [f for f in term.get("matchFields") or () if f.get("key") == "metadata.name" and f["operator"] == "In"]
        if not pinned:
            return None
        names |= set.intersection(*(set(each.get("values") or ()) for each in pinned))
    return names


def _requirement_matches(requirement: Obj, values: Mapping[str, str]) -> bool:
    key, wanted = str(requirement.get("key")), list(requirement.get("values") or [])
    match requirement.get("operator"):
        case "In":
            return values.get(key) in wanted
        case "NotIn":
            return values.get(key) not in wanted
        case "Exists":
            return key in values
        case "DoesNotExist":
            return key not in values
        case "Gt" | "Lt" as operator:
            return key in values and len(wanted) == 1 and _compares(str(operator), values[key], wanted[0])
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Term:
    """One pod (anti-)affinity term: which pods, in which namespaces, within which topology."""

    topology: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector | None

    @classmethod
    def of(cls, pod: Obj, term: Obj) -> Term:
        """Without namespaces and selector the pod's own namespace is meant."""
        chosen = frozenset(term.get("namespaces") or ())
        by_label = term.get("namespaceSelector")
        if not chosen and by_label is None:
            chosen = frozenset({namespace_of(pod)})
        keyed = None if by_label is None else label_selector_from(by_label)
        return cls(str(term.get("topologyKey")), label_selector_from(_merged(pod, term)), chosen, keyed)

    def matches(self, other: Obj, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        where = namespace_of(other)
        by_label = self.namespace_selector is not None and self.namespace_selector.matches(namespaces.get(where, {}))
        return (where in self.namespaces or by_label) and self.selector.matches(labels_of(other))

    @staticmethod
    def node_term_matches(term: Obj, node: Obj) -> bool:
        """Expressions over labels and fields, all of them; an empty term matches nothing."""
        expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
        if not expressions and not fields:
            return False
        by_label = all(_requirement_matches(each, labels_of(node)) for each in expressions)
        return by_label and all(_requirement_matches(each, {"metadata.name": name_of(node)}) for each in fields)


def _merged(pod: Obj, term: Obj) -> Obj | None:
    """The label selector with ``matchLabelKeys`` and ``mismatchLabelKeys`` of the pod filled in."""
    selector = term.get("labelSelector")
    labels = labels_of(pod)
    extra = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if selector is None or not extra:
        return None if selector is None else dict(selector)
    return dict(selector) | {"matchExpressions": [*(selector.get("matchExpressions") or []), *extra]}


def pod_terms(pod: Obj, kind: str) -> list[Term]:
    """The required terms; ``kind`` is ``podAffinity`` or ``podAntiAffinity``."""
    terms = dig(pod, "spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution", default=[])
    return [Term.of(pod, term) for term in terms]
