"""Parses ``resource.customizations`` of ``argocd-cm``, the settings by kind, in both forms.

The forms: the YAML map under ``resource.customizations`` (keys ``GROUP/KIND``), and one key per setting and kind,
``resource.customizations.WHAT.GROUP_KIND``, which wins. Pure. Rule: Argo CD ``util/settings``
(``GetResourceOverrides``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.kube.yaml.loading import YamlError, load

SETTING = "resource.customizations"
ALL = "all"
"""The kind part that means every kind, for settings that allow it."""


def yaml_map(text: str, setting: str) -> dict[str, Any]:
    """Parse a YAML mapping. Raises ValueError, naming the setting, for anything else."""
    value = setting_value(text, setting)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{setting}: found {type(value).__name__}, must be a mapping")
    return value


def setting_value(text: str, setting: str) -> Any:
    """Parse any YAML; None for an empty text. Raises ValueError, naming the setting."""
    try:
        return load(text, file=setting) if text.strip() else None
    except YamlError as error:
        raise ValueError(f"{setting}: {error}") from error


def customized(data: Mapping[str, str], what: str) -> dict[str, Any]:
    """Return key (``GROUP/KIND``, core: ``KIND``, ``all``) → value of setting ``what`` (``actions``, ``health``, …)."""
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
