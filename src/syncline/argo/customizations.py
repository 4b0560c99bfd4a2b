"""``resource.customizations`` of ``argocd-cm``: what people set by kind, in its two spellings.

The YAML map under ``resource.customizations`` (keys ``GROUP/KIND``), and one key for each setting and kind,
``resource.customizations.WHAT.GROUP_KIND``, which wins. Pure.
Rule: Argo CD ``util/settings`` (``GetResourceOverrides``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.kube.yaml.loading import YamlError, load

__all__ = ["customized", "setting_value", "yaml_map"]

SETTING = "resource.customizations"
ALL = "all"
"""The kind part that stands for every kind, where a setting has such a thing."""


def yaml_map(text: str, setting: str) -> dict[str, Any]:
    """A YAML mapping. Raises ValueError, naming the setting, for anything else."""
    value = setting_value(text, setting)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{setting}: found {type(value).__name__}, must be a mapping")
    return value


def setting_value(text: str, setting: str) -> Any:
    """Any YAML; None for an empty text. Raises ValueError, naming the setting."""
    try:
        return load(text, file=setting) if text.strip() else None
    except YamlError as error:
        raise ValueError(f"{setting}: {error}") from error


def customized(data: Mapping[str, str], what: str) -> dict[str, Any]:
    """Key (``GROUP/KIND``, core: ``KIND``, ``all``) → what is set there for ``what`` (``actions``, ``health``, …)."""
    found: dict[str, Any] = {}
    for key, entry in yaml_map(data.get(SETTING, ""), SETTING).items():
        if not isinstance(entry, dict):
            raise ValueError(f"{SETTING}: {key}: found {type(entry).__name__}, must be a mapping")
        if entry.get(what):
            found[str(key)] = entry[what]
    prefix = f"{SETTING}.{what}."
    for setting, value in sorted(data.items()):
        if setting.startswith(prefix) and len(setting) > len(prefix):
            found[setting.removeprefix(prefix).replace("_", "/", 1)] = value
    return found
