"""The kinds that a destination serves, as the sync engine asks for them. Frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from syncline.kube.objects import GVK, GroupKind, ResourceInfo


@dataclass(frozen=True, slots=True)
class KindProblem:
    """Why a kind cannot be used, as API discovery words it."""

    message: str
    not_found: bool


@dataclass(frozen=True)
class KindTable:
    """The kinds that the destination serves, by discovery."""

    served: Mapping[GVK, ResourceInfo]

    def find(self, gvk: GVK, verb: str = "get") -> ResourceInfo | KindProblem:
        """Return the resource of a kind that supports ``verb``, or a KindProblem with client-go's message."""
        info = self.served.get(gvk)
        if info is None:
            if (gvk.group, gvk.version) in self._versions:
                return KindProblem(f'{gvk.group_kind} "" not found', not_found=True)
            return KindProblem(
                f"failed to discover server resources for group version {gvk.api_version}: "
                "the server could not find the requested resource",
                not_found=True,
            )
        if verb not in info.verbs:
            return KindProblem(f'{verb} is not supported on resources of kind "{gvk.group_kind}"', not_found=False)
        return info

    def namespaced(self, group_kind: GroupKind) -> bool | None:
        """Return whether a kind is namespaced in any version; None: unknown."""
        return self._scopes.get(group_kind)

    @cached_property
    def _scopes(self) -> dict[GroupKind, bool]:
        return {gvk.group_kind: info.namespaced for gvk, info in self.served.items()}

    @cached_property
    def groups_of(self) -> Mapping[str, tuple[str, ...]]:
        """Return the sorted groups that serve a kind of each name."""
        found: dict[str, set[str]] = {}
        for info in self.served.values():
            found.setdefault(info.kind, set()).add(info.group)
        return {kind: tuple(sorted(groups)) for kind, groups in found.items()}

    @cached_property
    def _versions(self) -> frozenset[tuple[str, str]]:
        return frozenset((gvk.group, gvk.version) for gvk in self.served)
