"""Parses an Application's ``spec.source.kustomize``: :func:`parse_options`. Loads nothing of the engine.

How the options change a kustomization: ``sources/kustomize/argocd.py``. Rules: Argo CD ``util/kustomize`` (reference
argocd-app 1.3, 5.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from syncline.sources.errors import Problem, SourceError
from syncline.sources.kustomize.flags import NO_FLAGS, BuildFlags
from syncline.sources.rendering.environment import RenderContext, expand, plain_version

FIELD = "spec.source.kustomize"


@dataclass(frozen=True, slots=True)
class KustomizeOptions:
    """The block; pairs are in the given order. ``patches`` are JSON values with canonical field names."""

    name_prefix: str = ""
    name_suffix: str = ""
    namespace: str = ""
    images: tuple[str, ...] = ()
    replicas: tuple[tuple[str, int], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    force_labels: bool = False
    without_selector: bool = False
    include_templates: bool = False
    annotations: tuple[tuple[str, str], ...] = ()
    force_annotations: bool = False
    expand_annotations: bool = False
    patches: tuple[Any, ...] = ()
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    flags: BuildFlags = NO_FLAGS
    kube_version: str = ""
    """Of the destination, for charts; as the next one only where flags ask for charts."""
    api_versions: tuple[str, ...] = ()

    def completed(self, context: RenderContext, environment: Mapping[str, str]) -> KustomizeOptions:
        """Like :meth:`expanded`, with the versions of the destination filled in for charts."""
        asked = self.flags.helm
        return replace(
            self.expanded(environment),
            kube_version=(plain_version(self.kube_version) or context.kube_version) if asked else "",
            api_versions=(self.api_versions or context.api_versions) if asked else (),
        )

    def expanded(self, environment: Mapping[str, str]) -> KustomizeOptions:
        """Replace ``$ARGOCD_APP_…`` in images, values of labels and, if enabled, of annotations."""
        return replace(
            self,
            images=tuple(expand(image, environment) for image in self.images),
            labels=tuple((name, expand(value, environment)) for name, value in self.labels),
            annotations=tuple(
                (name, expand(value, environment) if self.expand_annotations else value)
                for name, value in self.annotations
            ),
        )


def parse_options(block: Mapping[str, Any]) -> KustomizeOptions:
    """Parse the block; raises :class:`SourceError` for invalid values."""
    return KustomizeOptions(
        name_prefix=str(block.get("namePrefix") or ""),
        name_suffix=str(block.get("nameSuffix") or ""),
        namespace=str(block.get("namespace") or ""),
        images=tuple(str(image) for image in block.get("images") or ()),
        replicas=tuple(_replica(entry) for entry in block.get("replicas") or ()),
        labels=_pairs(block.get("commonLabels")),
        force_labels=bool(block.get("forceCommonLabels")),
        without_selector=bool(block.get("labelWithoutSelector")),
        include_templates=bool(block.get("labelIncludeTemplates")),
        annotations=_pairs(block.get("commonAnnotations")),
        force_annotations=bool(block.get("forceCommonAnnotations")),
        expand_annotations=bool(block.get("commonAnnotationsEnvsubst")),
        patches=tuple(_patch(entry) for entry in block.get("patches") or ()),
        components=tuple(str(path) for path in block.get("components") or ()),
        ignore_missing_components=bool(block.get("ignoreMissingComponents")),
        kube_version=str(block.get("kubeVersion") or ""),
        api_versions=tuple(str(version) for version in block.get("apiVersions") or ()),
    )


def _pairs(values: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(value)) for name, value in (values or {}).items()))


def _replica(entry: Any) -> tuple[str, int]:
    count = entry.get("count") if isinstance(entry, dict) else None
    if isinstance(count, bool) or not re.fullmatch(r"[+-]?[0-9]{1,9}", str(count), re.ASCII):
        raise SourceError(
            Problem.INVALID,
            f"{FIELD}.replicas: count is {count!r}, not a number",
            field=f"{FIELD}.replicas",
            fix="give each entry a name and a count",
        )
    return str(entry.get("name") or ""), int(str(count))


def _patch(entry: Any) -> dict[str, Any]:
    from syncline.sources.kustomize.failure import about
    from syncline.sources.kustomize.kustomization import PATCH
    from syncline.sources.kustomize.yaml.shapes import Struct, read_struct

    with about(f"{FIELD}.patches"):
        return read_struct(Struct("Patch", PATCH), _with_flags(entry), strict=False)


def _with_flags(entry: Any) -> Any:
    """Convert Argo CD's ``options``, a map of booleans that may be written as text."""
    if not isinstance(entry, dict) or not isinstance(entry.get("options"), dict):
        return entry
    options = {name: value in (True, "true") for name, value in entry["options"].items()}
    return {**entry, "options": options}
