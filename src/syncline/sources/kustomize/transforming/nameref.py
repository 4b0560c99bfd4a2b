"""References follow the objects they name through every change of name.

Called once at the end of a build with all resources and the table of references. A reference is changed where exactly
one object had that name, or where one is nearest by prefixes, suffixes and namespace. Source: kustomize
``api/filters/nameref`` and ``nameReferenceTransformer``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.resources.resmap import ResMap
from syncline.sources.kustomize.resources.resource import NO_NAMESPACE, Gvk, ResId, Resource
from syncline.sources.kustomize.transforming.config import BackReference
from syncline.sources.kustomize.transforming.fieldspec import FieldSpec, apply_spec
from syncline.sources.kustomize.yaml.node import Kind, Node, field, get, is_missing, lookup, put, scalar, set_value


def fix_references(resources: ResMap, references: Iterable[BackReference]) -> None:
    """Rewrite the names in the fields of ``references``; raises :class:`BuildError` for ambiguous ones."""
    wanted = [(spec, reference.target) for reference in references for spec in reference.referrers]
    index = _Index(resources.resources)
    for referrer in resources:
        gvk = referrer.original_id.gvk
        mine = [(spec, target) for spec, target in wanted if gvk.is_selected(spec.gvk)]
        if mine:
            _Referrer(referrer, index).fix(mine)


class _Index:
    """What every object was called and is called. Names do not change while references are fixed."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        self.ids: dict[int, ResId] = {id(resource): resource.id for resource in resources}
        self.former: dict[int, list[ResId]] = {id(resource): resource.former_ids for resource in resources}
        self.by_former_name: dict[str, list[Resource]] = defaultdict(list)
        self.resources = resources
        for resource in resources:
            for name in dict.fromkeys(was.name for was in self.former[id(resource)]):
                self.by_former_name[name].append(resource)

    def id(self, resource: Resource) -> ResId:
        return self.ids[id(resource)]

    def original(self, resource: Resource) -> ResId:
        former = self.former[id(resource)]
        return former[0] if former else self.id(resource)


class _Referrer:
    def __init__(self, resource: Resource, index: _Index) -> None:
        self._resource = resource
        self._index = index
        self._id = index.id(resource)
        self._namespaces = _binding_namespaces(resource)

    def fix(self, wanted: list[tuple[FieldSpec, Gvk]]) -> None:
        gvk = self._resource.gvk
        for spec, target in wanted:
            exact = FieldSpec(spec.path, gvk, spec.create)
            shown = f"updating name reference in '{spec.path}' field of '{self._id}'"

            def change(node: Node, spec: FieldSpec = spec, target: Gvk = target) -> None:
                self._change(node, spec, target)

            with about(shown):
                apply_spec(self._resource, exact, change)

    def _change(self, node: Node, spec: FieldSpec, target: Gvk) -> None:
        if is_missing(node):
            return
        if node.kind is Kind.SEQ:
            for item in node.items:
                if not is_missing(item):
                    self._change_one(item, spec, target)
        else:
            self._change_one(node, spec, target)

    def _change_one(self, node: Node, spec: FieldSpec, target: Gvk) -> None:
        if node.kind is Kind.SCALAR:
            found = self._choose(node.value, self._candidates(node.value), spec, target, _same_name)
            if found is not None and found.name != node.value:
                set_value(node, scalar(found.name))
        elif node.kind is Kind.MAP:
            self._change_mapping(node, spec, target)
        else:
            raise BuildError("node must be a scalar, sequence or map")

    def _change_mapping(self, node: Node, spec: FieldSpec, target: Gvk) -> None:
        """A ``{name, namespace}``: the namespace is set, too."""
        named = get(node, "name")
        if named is None:
            raise BuildError("path config error; no 'name' field in node")
        old = named.value
        found = self._choose(old, self._in_namespace(node, old), spec, target, _same_name_and_namespace)
        if found is None or (found.name == old and not found.namespace):
            return
        put(node, "name", scalar(found.name))
        if found.namespace:
            put(node, "namespace", scalar(found.namespace))

    def _candidates(self, name: str) -> list[Resource]:
        return [resource for resource in self._index.by_former_name.get(name, ()) if self._is_near(resource)]

    def _is_near(self, resource: Resource) -> bool:
        """Return True if a reference may mean the object: same namespace, none, or one that a role binding names."""
        if self._id.cluster:
            return True
        other = self._index.id(resource)
        return (
            other.cluster
            or other.effective_namespace == self._id.effective_namespace
            or resource.namespace in self._namespaces
        )

    def _in_namespace(self, node: Node, name: str) -> list[Resource]:
        candidates = self._candidates(name)
        written = get(node, "namespace")
        if written is None:
            return candidates
        namespace = written.value
        everyone = [resource for resource in self._index.resources if self._is_near(resource)]
        before = namespace != NO_NAMESPACE and any(
            self._index.original(each).effective_namespace == namespace for each in everyone
        )
        if before:
            return [each for each in candidates if self._index.original(each).effective_namespace == namespace]
        if namespace == NO_NAMESPACE:
            return []
        return [each for each in candidates if self._index.id(each).effective_namespace == namespace]

    def _choose(
        self,
        name: str,
        candidates: list[Resource],
        spec: FieldSpec,
        target: Gvk,
        identical: Callable[[list[Resource]], bool],
    ) -> Resource | None:
        found = [each for each in candidates if self._was(each, target)]
        role = self._role(spec)
        if role is not None:
            found = [each for each in found if self._was(each, role)]
        found = [each for each in found if self._shares_namespace(each)]
        if len(found) == 1:
            return found[0]
        found = [each for each in found if _same_affixes(each, self._resource, allow_empty=True)]
        if len(found) > 1:
            found = [each for each in found if _same_affixes(each, self._resource, allow_empty=False)]
        if not found:
            return None
        if len(found) == 1 or identical(found):
            return found[0]
        ids = ", ".join(str(self._index.id(each)) for each in found)
        raise BuildError(f"found multiple possible referrals: {ids}")

    def _was(self, resource: Resource, gvk: Gvk) -> bool:
        return any(was.gvk.is_selected(gvk) for was in self._index.former[id(resource)])

    def _role(self, spec: FieldSpec) -> Gvk | None:
        if not spec.path.endswith("roleRef/name"):
            return None
        reference = lookup(self._resource.node, ["roleRef"])
        group, kind = field(reference, "apiGroup"), field(reference, "kind")
        return None if group is None or kind is None else Gvk(group=group.value, kind=kind.value)

    def _shares_namespace(self, resource: Resource) -> bool:
        other = self._index.id(resource)
        if self._id.cluster or other.cluster or resource.kind == "ServiceAccount":
            return True
        return other.effective_namespace == self._id.effective_namespace


def _binding_namespaces(resource: Resource) -> frozenset[str]:
    """The namespaces of the service accounts that a RoleBinding names."""
    subjects = field(resource.node, "subjects") if resource.kind == "RoleBinding" else None
    if subjects is None or subjects.kind is not Kind.SEQ:
        return frozenset()
    found: set[str] = set()
    for subject in subjects.items:
        namespace, kind = field(subject, "namespace"), field(subject, "kind")
        if namespace is None or kind is None or kind.value != "ServiceAccount":
            continue
        if is_missing(namespace):
            raise BuildError(f'Invalid Input: namespace is blank for resource "{resource.id}"')
        found.add(namespace.value)
    return frozenset(found)


def _same_affixes(one: Resource, other: Resource, *, allow_empty: bool) -> bool:
    pairs = ((one.notes.prefixes, other.notes.prefixes), (one.notes.suffixes, other.notes.suffixes))
    return all((allow_empty and (not a or not b)) or _same_ending(a, b) for a, b in pairs)


def _same_ending(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return True if the shorter list ends the longer one; an empty list ends only an empty one."""
    shorter, longer = sorted((one, other), key=len)
    return longer[-len(shorter) :] == shorter if shorter else not longer


def _same_name(found: list[Resource]) -> bool:
    return len({resource.name for resource in found}) == 1


def _same_name_and_namespace(found: list[Resource]) -> bool:
    return len({(resource.name, resource.namespace) for resource in found}) == 1
