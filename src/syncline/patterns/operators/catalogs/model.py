"""A catalogue as the resolver meets it: entries of channels with their bundles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from syncline.kube.objects import Obj
from syncline.patterns.operators.groups import Api
from syncline.patterns.operators.resolver.versions import Range, Version


class SourceKey(NamedTuple):
    """A CatalogSource; one without a name stands for what a namespace has installed."""

    name: str
    namespace: str

    @property
    def virtual(self) -> bool:
        return not self.name

    def __str__(self) -> str:
        return f"{self.name or '@existing'}/{self.namespace}"


class Property(NamedTuple):
    """A property of a bundle; ``value`` is JSON."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Bundle:
    """One version of an operator. ``objects``: its manifests, the ClusterServiceVersion among them."""

    name: str
    package: str
    version: Version | None
    image: str = ""
    properties: tuple[Property, ...] = ()
    objects: tuple[Obj, ...] = field(default=(), hash=False)
    stand_in: bool = False
    """Whether the objects were made of ``olm.csv.metadata``, because the catalogue has no manifests."""
    deprecated: str = ""

    @property
    def apis(self) -> frozenset[Api]:
        """What it provides."""
        found = (_api(one.value) for one in self.properties if one.kind == "olm.gvk")
        return frozenset(one for one in found if one is not None)

    def provides(self, api: Api) -> bool:
        return api in self.apis


def _api(value: Any) -> Api | None:
    if not isinstance(value, dict):
        return None
    return Api(*(str(value.get(part) or "") for part in ("group", "version", "kind")))


@dataclass(frozen=True, slots=True)
class Entry:
    """A bundle in a channel."""

    bundle: Bundle = field(hash=False)
    channel: str
    source: SourceKey
    name: str
    default_channel: bool = False
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: Range | None = field(default=None, hash=False, compare=False)
    subscribed: bool = False
    """Of an installed one: whether a Subscription keeps it."""

    @property
    def identity(self) -> str:
        return f"{self.source}/{self.channel}/{self.name}"

    @property
    def package(self) -> str:
        return self.bundle.package


@dataclass(frozen=True, slots=True)
class Channel:
    name: str
    entries: tuple[Entry, ...]
    head: str
    """The bundle that no other one replaces or skips."""
    deprecated: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    default_channel: str
    channels: Mapping[str, Channel]
    description: str = ""
    icon: Obj | None = None
    deprecated: str = ""


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a CatalogSource offers. ``digest`` changes with its content."""

    packages: Mapping[str, Package]
    digest: str = ""
    priority: int = 0

    @property
    def size(self) -> int:
        """The number of entries."""
        return sum(len(channel.entries) for one in self.packages.values() for channel in one.channels.values())

    def at(self, source: SourceKey) -> tuple[Entry, ...]:
        """Return all entries, as those of ``source``."""
        found = (
            entry
            for package in self.packages.values()
            for channel in package.channels.values()
            for entry in channel.entries
        )
        return tuple(replace(one, source=source) for one in found)
