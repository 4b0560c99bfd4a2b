"""Applies an Application's ``spec.source.kustomize`` to a kustomization before the build: :func:`edit_of`.

``sources/kustomize/options.py`` parses the block; :func:`edit_of` makes the changes of ``kustomize edit`` in memory.
Order and rules: Argo CD ``util/kustomize`` (reference argocd-app 1.3, 5.4).
"""

from __future__ import annotations

import contextlib
import posixpath
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from syncline.kube.text.glob import GlobError, path_match
from syncline.sources.kustomize.build import Edit
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.flags import NO_FLAGS
from syncline.sources.kustomize.kustomization import Kustomization
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.options import KustomizeOptions
from syncline.sources.kustomize.transforming.transform import split_image


def edit_of(options: KustomizeOptions, folder: Folder) -> Edit | None:
    """Return the change of the outermost kustomization, None if there is none."""
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
        found = (place for path in wanted for place in _matching(folder, path))
        fields["components"] = list(dict.fromkeys([*given.texts("components"), *found]))
    return fields


def _exists(folder: Folder, path: str) -> bool:
    joined = f"{folder.path}/{path}" if folder.path else path
    return folder.source.find(joined) is not None


def _matching(folder: Folder, pattern: str) -> list[str]:
    """Return the paths that a pattern matches (Go ``filepath.Glob``), or the pattern itself if there are none."""
    if not any(mark in pattern for mark in "*?["):
        return [pattern]
    wanted = posixpath.normpath(posixpath.join(folder.path, pattern))
    files = [PurePosixPath(name) for name, _ in folder.source.listing("")]
    there = {str(place) for file in files for place in (file, *file.parents)}
    with contextlib.suppress(GlobError):
        found = sorted(place for place in there if path_match(wanted, place))
        return [posixpath.relpath(place, folder.path or ".") for place in found] or [pattern]
    return [pattern]


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
        if options.include_templates:
            raise BuildError("labelIncludeTemplates needs labelWithoutSelector", fix="set both, or neither")
        there = dict(fields.get("commonLabels") or {})
        fields["commonLabels"] = _added(there, options.labels, options.force_labels, "label")
        return
    entries = list(fields.get("labels") or ())
    wanted = (False, options.include_templates)
    alike = (at for at, one in enumerate(entries) if tuple(bool(one.get(flag)) for flag in _LABEL_FLAGS) == wanted)
    at = next(alike, len(entries))
    given: dict[str, Any] = entries[at] if at < len(entries) else dict(zip(_LABEL_FLAGS, wanted))
    pairs = _added(dict(given.get("pairs") or {}), options.labels, options.force_labels, "label")
    fields["labels"] = [*entries[:at], {**given, "pairs": pairs}, *entries[at + 1 :]]


_LABEL_FLAGS = ("includeSelectors", "includeTemplates")
_KEEP = "*"


def _images(there: list[dict[str, Any]], given: tuple[str, ...]) -> list[dict[str, Any]]:
    """Merge entries by name; given parts replace the old ones, an asterisk preserves them."""
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
    """Parse ``name=new:tag``, ``name=new@digest``, ``name:tag`` or ``name@digest``."""
    named, equals, reference = text.partition("=")
    new, tag, digest = split_image(reference if equals else text)
    if new == text:
        fix = "use name=newname, name:tag, name@digest or name=newname:tag"
        raise BuildError(f"invalid format of image {text!r}", fix=fix)
    kept = {"newTag": tag, "digest": digest}
    return {"name": named, "newName": new, **kept} if equals and named else {"name": new, **kept}
