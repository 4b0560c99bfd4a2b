"""The installation in which races are rehearsed, from the values of a cluster group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from syncline.assembly.operators.folders import FolderCatalogs
from syncline.clustergroup.defaults import layered
from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import YamlError, dump, load
from syncline.patterns.installing.given import spec_given
from syncline.patterns.operators.behaving import Behaviours
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.pattern import BASIC_USER, GLOBAL, completed, pattern_of
from syncline.rehearsal.installing.playing import Installation, Platform
from syncline.rehearsal.scenario import ScenarioError

MERGED: Final = "rehearsed-values.yaml"


@dataclass(frozen=True, slots=True)
class Given:
    """``folder``: of the pattern; ``values``: those of its cluster group, merged; ``copies``: folders by address;
    ``objects``: what the cluster has before."""

    folder: Path
    values: Obj
    catalogs: FolderCatalogs
    behaviours: Behaviours
    copies: Mapping[str, Path] = field(default_factory=dict)
    objects: Sequence[Obj] = ()

    def installation(self) -> Installation:
        """Return what is rehearsed: the values count as they are, whatever the files in the folder say. Raises
        ScenarioError (usage) without a cluster group."""
        spec = spec_given(self.values)
        group = str(dig(self.values, "clusterGroup", "name") or spec.get("clusterGroupName") or "")
        if not group:
            raise ScenarioError("the values have no clusterGroup.name; give those of a cluster group", usage=True)
        name = str(dig(self.values, "global", "pattern") or "pattern")
        shared = {key: one for key, one in self.values.items() if key in ("global", "main")}
        files = {
            GLOBAL: dump({"global": {"pattern": name}, **shared}),
            f"values-{group}.yaml": dump({"clusterGroup": dig(self.values, "clusterGroup")}),
            MERGED: dump(self.values),
        }
        more = [*(spec.get("extraValueFiles") or ()), MERGED]
        return Installation(
            self.folder,
            name,
            group,
            self.catalogs,
            self.behaviours,
            spec | {"clusterGroupName": group, "extraValueFiles": more},
            files,
            self.copies,
            (*BASIC_USER, *self.objects),
            Platform(""),
            nodes=1,
        )


def values_in(files: Files, name: str) -> Obj:
    """Return the values of the cluster group in a repository that is a pattern. Raises ScenarioError (usage)."""
    pattern = pattern_of(files, name, "")
    if pattern is None:
        said = "found no values-*.yaml with clusterGroup.name; allowed: the folder of a pattern"
        raise ScenarioError(f"--races: {name}: {said}", usage=True)
    every = completed(files, name)
    group = pattern["spec"]["clusterGroupName"]
    try:
        found = [
            load(every.content[path], file=path) for path in (GLOBAL, f"values-{group}.yaml") if path in every.content
        ]
    except YamlError as error:
        raise ScenarioError(f"--races: {error}", usage=True) from error
    return layered(one for one in found if isinstance(one, dict))
