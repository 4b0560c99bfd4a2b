"""The commands by which a user renders a dry source, for the README of a hydrated folder. Pure.

They repeat the settings of the Application; API versions of the destination are left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.source_type import SourceType

MAX_COMMAND = 4000
_EDITS = (("namePrefix", "nameprefix"), ("nameSuffix", "namesuffix"), ("namespace", "namespace"))


def commands_of(source_type: str, source: Mapping[str, Any], context: RenderContext) -> list[str]:
    """Return the commands; empty for plain manifests and for plugins, which only the operator can run."""
    path = str(source.get("path") or ".")
    if source_type == SourceType.HELM:
        found = [_helm(path, _block(source, "helm"), context)]
    elif source_type == SourceType.KUSTOMIZE:
        edits = _kustomize(_block(source, "kustomize"))
        found = [["cd", path], *edits, ["kustomize", "build", "."]] if edits else [["kustomize", "build", path]]
    else:
        found = []
    return [shlex.join(words).replace("\n", " ")[:MAX_COMMAND] for words in found]


def _block(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = source.get(name)
    return found if isinstance(found, dict) else {}


def _helm(path: str, block: Mapping[str, Any], context: RenderContext) -> list[str]:
    words = ["helm", "template", path, "--name-template", str(block.get("releaseName") or context.name)]
    words += ["--namespace", str(block.get("namespace") or context.namespace or "default")]
    version = str(block.get("kubeVersion") or context.kube_version)
    words += ["--kube-version", version] if version else []
    for one in block.get("parameters") or ():
        words += ["--set-string" if one.get("forceString") else "--set", f"{one.get('name')}={one.get('value', '')}"]
    for one in block.get("fileParameters") or ():
        words += ["--set-file", f"{one.get('name')}={one.get('path')}"]
    for file in block.get("valueFiles") or ():
        words += ["--values", str(file)]
    return [*words, *([] if block.get("skipCrds") else ["--include-crds"])]


def _kustomize(block: Mapping[str, Any]) -> list[list[str]]:
    """Return the ``kustomize edit`` commands that Argo CD runs in the folder."""
    edits = [["set", verb, "--", str(block[field])] for field, verb in _EDITS if block.get(field)]
    images = [str(image) for image in block.get("images") or ()]
    edits += [["set", "image", *images]] if images else []
    for field, verb in (("commonLabels", "label"), ("commonAnnotations", "annotation")):
        pairs = [f"{key}:{value}" for key, value in (block.get(field) or {}).items()]
        edits += [["add", verb, *pairs]] if pairs else []
    return [["kustomize", "edit", *words] for words in edits]
