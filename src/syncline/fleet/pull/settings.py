"""The ConfigMap that switches the ACM variant off (reference ocm-pull-model §9.8)."""

from __future__ import annotations

from syncline.control.plan import Create
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import YamlError, load

NAME = "multicluster-integrations-config"
KEY = "config.yaml"


def is_disabled(config_map: Obj | None) -> bool:
    """Return whether ``pullModel.basic.disabled`` is true. What can't be read leaves the pull model on, as upstream."""
    text = ((config_map or {}).get("data") or {}).get(KEY) or ""
    try:
        value = load(text)
    except YamlError:
        return False
    for part in ("pullModel", "basic", "disabled"):
        value = value.get(part) if isinstance(value, dict) else None
    return value is True


def defaults(namespace: str) -> Create:
    """Return the creation of the ConfigMap with upstream's defaults, for administrators to find."""
    metadata = {"name": NAME, "namespace": namespace}
    data = {KEY: "pullModel:\n  basic: {}\n"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Create(made, "settings of the pull model can be changed there")
