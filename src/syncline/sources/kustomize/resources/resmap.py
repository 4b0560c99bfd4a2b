"""The ordered resources of a build, found by their current and former names: :class:`ResMap`.

Used by every step of a build. Two objects of one kind, name and namespace are an error (kustomize ``resWrangler``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from syncline.kube.selectors import SelectorError, parse_label_selector
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.datamap import fill_binary_data, fill_data
from syncline.sources.kustomize.resources.resource import Behavior, Gvk, ResId, Resource
from syncline.sources.kustomize.transforming.patterns import Anchored
from syncline.sources.kustomize.yaml.node import clear, is_empty


class Selector:
    """The ``target`` of a patch: regular expressions for group, version, kind, name and namespace, and two
    selectors."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self._group, self._version, self._kind, self._name, self._namespace = (
            Anchored(raw.get(part) or "") for part in ("group", "version", "kind", "name", "namespace")
        )

    def gvk(self, gvk: Gvk) -> bool:
        return self._group.allows(gvk.group) and self._version.allows(gvk.version) and self._kind.allows(gvk.kind)

    def name(self, name: str) -> bool:
        return self._name.allows(name)

    def namespace(self, namespace: str) -> bool:
        return self._namespace.allows(namespace)

    def id(self, found: ResId) -> bool:
        return self.gvk(found.gvk) and self.name(found.name) and self.namespace(found.namespace)

    def metadata(self, resource: Resource) -> bool:
        return matches_labels(self.raw.get("labelSelector"), resource.labels()) and matches_labels(
            self.raw.get("annotationSelector"), resource.annotations()
        )


def matches_labels(selector: str | None, labels: dict[str, str]) -> bool:
    if not selector:
        return True
    try:
        return parse_label_selector(selector).matches(labels)
    except SelectorError as error:
        raise BuildError(str(error)) from None


class ResMap:
    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self.resources: list[Resource] = []
        self.extend(resources)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self.resources))

    def __len__(self) -> int:
        return len(self.resources)

    def extend(self, resources: Iterable[Resource]) -> None:
        """Append all; raises :class:`BuildError` for an existing id."""
        keys = {resource.id.key for resource in self.resources}
        for resource in resources:
            here = resource.id
            if here.key in keys:
                raise BuildError(f"may not add resource with an already registered id: {here}")
            keys.add(here.key)
            self.resources.append(resource)

    def drop_empty(self) -> None:
        self.resources = [resource for resource in self.resources if not is_empty(resource.node)]

    def by_any_id(self, wanted: Callable[[ResId], bool]) -> list[Resource]:
        """Return the resources whose current or a former id matches ``wanted``."""
        return [
            resource
            for resource in self.resources
            if not is_empty(resource.node) and any(wanted(found) for found in resource.all_ids)
        ]

    def one(self, wanted: ResId) -> Resource:
        """Return the target of a patch; raises :class:`BuildError` unless there is exactly one."""
        found = self.by_any_id(lambda here: here.key == wanted.key)
        if len(found) == 1:
            return found[0]
        many = "multiple matches" if found else "no matches"
        raise BuildError(f"{many} for Id {wanted}; failed to find unique target for patch {wanted}")

    def select(self, selector: Selector) -> list[Resource]:
        return [resource for resource in self.resources if _is_selected(resource, selector)]

    def absorb(self, resources: Iterable[Resource], index: IdIndex | None = None) -> None:
        """Add generated resources; depending on their behaviour they replace or merge into an existing one.

        ``index`` avoids a search through all resources for each of many additions.
        """
        index = index or IdIndex(self.resources)
        for resource in resources:
            self._absorb(resource, index)

    def _absorb(self, resource: Resource, index: IdIndex) -> None:
        here = resource.id
        behavior = resource.notes.behavior or Behavior.UNSPECIFIED
        found = index.with_key(here)
        if len(found) > 1:
            raise BuildError(f"found multiple objects {[str(f.id) for f in found]} that could accept merge of {here}")
        joins = behavior in (Behavior.MERGE, Behavior.REPLACE)
        if not found:
            if joins:
                raise BuildError(f"id {_long(here)} does not exist; cannot merge or replace")
            self.resources.append(resource)
            index.add(resource)
            return
        if not joins:
            raise BuildError(
                f"id {_long(here)} exists; can not use behavior: '{behavior}', behavior must be merge or replace"
            )
        old = found[0]
        take_metadata(resource, old)
        if behavior is Behavior.MERGE:
            set_data(resource, {**old.data("data"), **resource.data("data")}, "data")
            set_data(resource, {**old.data("binaryData"), **resource.data("binaryData")}, "binaryData")
            resource.origin = old.origin or resource.origin
        self.resources[self.resources.index(old)] = resource
        index.replace(old, resource)


class IdIndex:
    """Resources by every current and former id; valid until one of them is renamed."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._found: dict[tuple[Gvk, str, str], list[Resource]] = {}
        for resource in resources:
            self.add(resource)

    def with_key(self, wanted: ResId) -> list[Resource]:
        return self._found.get(wanted.key, [])

    def add(self, resource: Resource) -> None:
        if not is_empty(resource.node):
            for key in dict.fromkeys(each.key for each in resource.all_ids):
                self._found.setdefault(key, []).append(resource)

    def replace(self, old: Resource, new: Resource) -> None:
        """Give ``new`` the names of ``old``."""
        for found in self._found.values():
            for at, resource in enumerate(found):
                if resource is old:
                    found[at] = new


def _is_selected(resource: Resource, selector: Selector) -> bool:
    here, was = resource.id, resource.original_id
    return (
        (selector.namespace(was.effective_namespace) or selector.namespace(here.effective_namespace))
        and (selector.name(was.name) or selector.name(here.name))
        and selector.gvk(here.gvk)
        and selector.metadata(resource)
    )


def _long(found: ResId) -> str:
    """Print an id as Go does, which people search for."""
    gvk = found.gvk
    scope = "true" if found.cluster else "false"
    return (
        f'resid.ResId{{Gvk:resid.Gvk{{Group:"{gvk.group}", Version:"{gvk.version}", Kind:"{gvk.kind}", '
        f'isClusterScoped:{scope}}}, Name:"{found.name}", Namespace:"{found.namespace}"}}'
    )


def take_metadata(resource: Resource, other: Resource) -> None:
    """Copy name, namespace, labels, annotations and notes of ``other``; those of ``resource`` win."""
    resource.set_labels({**other.labels(), **resource.labels()})
    resource.set_annotations({**other.annotations(), **resource.annotations()})
    needs_hash = resource.notes.needs_hash
    resource.notes = other.copy().notes
    resource.notes.needs_hash = needs_hash and other.notes.needs_hash
    resource.set_name(other.name)
    resource.set_namespace(other.namespace)
    resource.ref_vars = list(other.ref_vars)
    resource.origin = resource.origin or other.origin
    resource.transformations = resource.transformations or list(other.transformations)


def set_data(resource: Resource, values: dict[str, str], field: str) -> None:
    clear(resource.node, field)
    if field == "data":
        fill_data(resource.node, {name: value.encode("utf-8", "surrogateescape") for name, value in values.items()})
    else:
        fill_binary_data(resource.node, values)
