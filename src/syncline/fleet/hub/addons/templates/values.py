"""The variables of an AddOnTemplate: what may stand between ``{{`` and ``}}``, and what containers have in their
environment; pure.

Rules: ``pkg/addon/templateagent/values.go`` of upstream. Variables are replaced in the texts of a manifest, not in its
JSON, so a value cannot change what surrounds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from syncline.kube.objects import Obj, annotations_of, dig, name_of

HUB_KUBECONFIG: Final = "/managed/hub-kubeconfig/kubeconfig"
IMAGE_REGISTRIES: Final = "open-cluster-management.io/image-registries"
"""The annotation of a cluster: mirrors of image registries, as JSON."""
MOST_REGISTRIES: Final = 100
_VARIABLE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def variables(cluster: Obj, template: Obj, config: Obj) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables, and those of them that containers have in their environment, in order."""
    preset: dict[str, str] = {}
    if dig(template, "spec", "registration") is not None:
        preset["HUB_KUBECONFIG"] = HUB_KUBECONFIG
    custom = dig(config, "spec", "customizedVariables") or ()
    values = preset | {str(one.get("name")): str(one.get("value") or "") for one in custom}
    built_in = {"CLUSTER_NAME": name_of(cluster)}
    if dig(config, "spec", "agentInstallNamespace"):
        built_in["INSTALL_NAMESPACE"] = str(dig(config, "spec", "agentInstallNamespace"))
    values |= built_in
    return values, {name: values[name] for name in (*preset, *built_in)}


def substituted(value: Any, values: Mapping[str, str]) -> Any:
    """Return JSON with its variables replaced; an unknown one is replaced by nothing, as upstream does."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: values.get(found[1], ""), value) if "{{" in value else value
    if isinstance(value, list):
        return [substituted(one, values) for one in value]
    if isinstance(value, dict):
        return {str(substituted(key, values)): substituted(one, values) for key, one in value.items()}
    return value


def registries(cluster: Obj, config: Obj) -> tuple[Obj, ...]:
    """Return the mirrors of image registries: those of the deployment config, else those of the cluster. Raises
    ValueError for an annotation that is not what it should be."""
    given = dig(config, "spec", "registries")
    if given is not None:
        return tuple(given)
    text = annotations_of(cluster).get(IMAGE_REGISTRIES, "")
    if not text:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"annotation {IMAGE_REGISTRIES} of cluster {name_of(cluster)} is not JSON: {error}") from None
    listed = found.get("registries") if isinstance(found, dict) else None
    if (
        not isinstance(listed, list)
        or len(listed) > MOST_REGISTRIES
        or not all(isinstance(one, dict) for one in listed)
    ):
        why = f"write a list of at most {MOST_REGISTRIES} objects with source and mirror under registries"
        raise ValueError(f"annotation {IMAGE_REGISTRIES} of cluster {name_of(cluster)}: {why}")
    return tuple(listed)


def mirrored(image: str, mirrors: tuple[Obj, ...]) -> str:
    """Return where an image is pulled from; the last mirror that changes it counts."""
    found = image
    for one in mirrors:
        source, mirror = str(one.get("source") or "").rstrip("/"), str(one.get("mirror") or "").rstrip("/")
        name = image.rsplit("/", 1)[-1]
        if not source:
            changed = f"{mirror}/{name}" if mirror else name
        elif image.startswith(source):
            changed = mirror + image[len(source) :]
        else:
            continue
        found = changed if changed != image else found
    return found
