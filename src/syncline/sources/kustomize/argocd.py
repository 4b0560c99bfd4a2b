"""``spec.source.kustomize`` of an Application: what Argo CD sets in a kustomization before it builds it.

``sources/renderer.py`` parses the block with :func:`parse_options`; :func:`edit_of` makes the change that ``kustomize
edit`` would make on disk. Order and rules: Argo CD ``util/kustomize`` (reference argocd-app 1.3, 5.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from syncline.sources.environment import RenderContext, expand, plain_version
from syncline.sources.errors import Problem, SourceError
from syncline.sources.kustomize.build import Edit
from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.flags import NO_FLAGS, BuildFlags
from syncline.sources.kustomize.kustomization import PATCH, Kustomization
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.shapes import Struct, read_struct

__all__ = ["KustomizeOptions", "edit_of", "parse_options"]

FIELD = "spec.source.kustomize"


@dataclass(frozen=True, slots=True)
class KustomizeOptions:
    """The block; pairs keep the order they were given in. ``patches`` are JSON values in canonical field names."""

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
        """As :meth:`expanded`, with the versions of the destination where charts may ask for them."""
        asked = self.flags.helm
        return replace(
            self.expanded(environment),
            kube_version=(plain_version(self.kube_version) or context.kube_version) if asked else "",
            api_versions=(self.api_versions or context.api_versions) if asked else (),
        )

    def expanded(self, environment: Mapping[str, str]) -> KustomizeOptions:
        """With ``$ARGOCD_APP_…`` replaced in images, values of labels and, where asked for, of annotations."""
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
    """Read the block; raises :class:`SourceError` for values that cannot be meant."""
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
    if isinstance(count, bool) or not re.fullmatch(r"[0-9]{1,9}", str(count)):
        raise SourceError(
            Problem.INVALID,
            f"{FIELD}.replicas: count is {count!r}, not a number",
            field=f"{FIELD}.replicas",
            fix="give each entry a name and a count",
        )
    return str(entry.get("name") or ""), int(str(count))


def _patch(entry: Any) -> dict[str, Any]:
    with about(f"{FIELD}.patches"):
        return read_struct(Struct("Patch", PATCH), _with_flags(entry), strict=False)


def _with_flags(entry: Any) -> Any:
    """Argo CD's ``options`` are a map of booleans, also written as text."""
    if not isinstance(entry, dict) or not isinstance(entry.get("options"), dict):
        return entry
    options = {name: value in (True, "true") for name, value in entry["options"].items()}
    return {**entry, "options": options}


def edit_of(options: KustomizeOptions, folder: Folder) -> Edit | None:
    """The change of the outermost kustomization, None if there is none to make."""
    edits = replace(options, expand_annotations=False, flags=NO_FLAGS, kube_version="", api_versions=())
    if edits == KustomizeOptions():
        return None
    return lambda given: replace(given, fields=_edited(dict(given.fields), options, folder, given))


def _edited(fields: dict[str, Any], options: KustomizeOptions, folder: Folder, given: Kustomization) -> dict[str, Any]:
    for name, value in (("namePrefix", options.name_prefix), ("nameSuffix", options.name_suffix)):
        if value:
            fields[name] = value
    if options.images:
        fields["images"] = _images(given.entries("images"), options.images)
    if options.replicas:
        merged = {entry.get("name", ""): entry for entry in given.entries("replicas")}
        merged |= {name: {"name": name, "count": count} for name, count in options.replicas}
        fields["replicas"] = [merged[name] for name in sorted(merged)]
    if options.labels:
        _add_labels(fields, options)
    if options.annotations:
        there = dict(fields.get("commonAnnotations") or {})
        fields["commonAnnotations"] = _added(there, options.annotations, options.force_annotations, "annotation")
    if options.namespace:
        fields["namespace"] = options.namespace
    if options.patches:
        fields["patches"] = [*given.entries("patches"), *options.patches]
    if options.components:
        wanted = [path for path in options.components if not options.ignore_missing_components or _exists(folder, path)]
        fields["components"] = list(dict.fromkeys([*given.texts("components"), *wanted]))
    return fields


def _exists(folder: Folder, path: str) -> bool:
    joined = f"{folder.path}/{path}" if folder.path else path
    return folder.source.find(joined) is not None


def _added(there: dict[str, str], more: tuple[tuple[str, str], ...], force: bool, kind: str) -> dict[str, str]:
    for name, value in more:
        if name in there and not force:
            raise BuildError(
                f"{kind} {name} already in kustomization file",
                fix=f"set force{'CommonLabels' if kind == 'label' else 'CommonAnnotations'}",
            )
        there[name] = value
    return there


def _add_labels(fields: dict[str, Any], options: KustomizeOptions) -> None:
    if not options.without_selector:
        there = dict(fields.get("commonLabels") or {})
        fields["commonLabels"] = _added(there, options.labels, options.force_labels, "label")
        return
    entry: dict[str, Any] = {"pairs": dict(options.labels)}
    if options.include_templates:
        entry["includeTemplates"] = True
    fields["labels"] = [*(fields.get("labels") or ()), entry]


_TAGGED = re.compile(r"(.*):([a-zA-Z0-9._-]*|\*)")
_KEEP = "*"


def _images(there: list[dict[str, Any]], given: tuple[str, ...]) -> list[dict[str, Any]]:
    """Entries by name; what is given replaces what is there, an asterisk keeps that part of it."""
    merged = {image["name"]: image for image in (_image(text) for text in given)}
    for entry in there:
        name = entry.get("name", "")
        if name in merged:
            merged[name] = {
                part: entry.get(part, "") if value == _KEEP and part != "name" else value
                for part, value in merged[name].items()
            }
        else:
            merged[name] = dict(entry)
    made = [{part: "" if value == _KEEP else value for part, value in image.items()} for image in merged.values()]
    return sorted(made, key=lambda image: str(image.get("name", "")))


def _image(text: str) -> dict[str, str]:
    """``name=new:tag``, ``name=new@digest``, ``name:tag`` or ``name@digest``."""
    parts = text.split("=")
    if len(parts) == 2:
        return {"name": parts[0], **_reference(parts[1], text, with_name=True)}
    made = _reference(text, text, with_name=False)
    return {"name": made.pop("newName"), **made}


def _reference(text: str, whole: str, *, with_name: bool) -> dict[str, str]:
    name, at, digest = text.partition("@")
    if at:
        return {"newName": name, "digest": digest}
    tagged = _TAGGED.fullmatch(text)
    if tagged:
        return {"newName": tagged[1], "newTag": tagged[2]}
    if text and with_name:
        return {"newName": text}
    raise BuildError(
        f"invalid format of image {whole!r}", fix="use name=newname, name:tag, name@digest or name=newname:tag"
    )
