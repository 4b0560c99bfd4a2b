"""What projects and settings of the control namespace say about reading sources, as the sources room wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from syncline.gitops.project import permits_source
from syncline.kube import yaml
from syncline.kube.objects import Obj, dig, name_of
from syncline.sources.sourcing import NO_RULES, SourceRules

__all__ = ["SETTINGS_MAP", "source_rules"]

SETTINGS_MAP = "argocd-cm"


def source_rules(projects: Iterable[Obj], config_maps: Iterable[Obj]) -> SourceRules:
    """From the AppProjects and ConfigMaps of the control namespace; a project that is not there permits nothing."""
    by_name = {name_of(one): one for one in projects}
    maps = {name_of(one): dig(one, "data", default={}) or {} for one in config_maps}

    def permits(project: str, url: str) -> bool:
        found = by_name.get(project or "default")
        return found is not None and permits_source(found, url)

    return SourceRules(schemes=_schemes(maps.get(SETTINGS_MAP, {})), permits=permits)


def _schemes(settings: Mapping[str, object]) -> tuple[str, ...]:
    """``helm.valuesFileSchemes``: a list in YAML or with commas; absent means the default."""
    given = str(settings.get("helm.valuesFileSchemes") or "").strip()
    if not given:
        return NO_RULES.schemes
    try:
        value = yaml.load(given, file="helm.valuesFileSchemes")
    except yaml.YamlError:
        value = None
    listed = value if isinstance(value, list) else given.split(",")
    return tuple(str(one).strip().lower() for one in listed if str(one).strip())
