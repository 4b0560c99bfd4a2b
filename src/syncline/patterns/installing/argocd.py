"""The ``ArgoCD`` object that a Pattern's operator wants for all cluster groups; pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``argo.go`` (``newArgoCD``). What does not depend on settings, and
the scripts of health checks, which have to be upstream's to the letter, are data beside this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from syncline.clustergroup.defaults import UNBOUND_CLAIMS
from syncline.kube.objects import Obj, copied
from syncline.kube.yaml.loading import YamlError, load
from syncline.patterns.installing.config import (
    ADMINS,
    APPLICATION_HEALTH,
    ARGO_RBAC,
    CUSTOM_ARGO,
    CUSTOM_HEALTH,
    OperatorConfig,
    Places,
)

ADMIN_GROUPS: Final = ("system:cluster-admins", "cluster-admins", "admin")
RBAC_FIELDS: Final = ("defaultPolicy", "policy", "scopes", "policyMatcherMode")
HEALTH_FIELDS: Final = ("group", "kind", "check")


def argo_instance(config: OperatorConfig, places: Places) -> Obj:
    """Return the ArgoCD object; a setting that cannot be read counts as absent (``unreadable`` names it)."""
    made: Obj = copied(_fixed())
    made["metadata"] |= {"name": places.argo_name, "namespace": places.argo_namespace}
    made["spec"] |= {"rbac": _rbac(config), "resourceHealthChecks": _checks(config)}
    return made


def with_own_settings(instance: Obj, config: OperatorConfig) -> Obj:
    """Return the object with ``gitops.customArgoYaml`` laid over its spec: what is empty there changes nothing."""
    over, _ = _read(config.text(CUSTOM_ARGO))
    if not isinstance(over, dict):
        return instance
    return {**instance, "spec": _laid(instance["spec"], over)}


def unreadable(config: OperatorConfig) -> list[str]:
    """Return why settings of the operator are not used."""
    wanted = ((ARGO_RBAC, dict), (CUSTOM_HEALTH, list), (CUSTOM_ARGO, dict))
    found = []
    for key, kind in wanted:
        value, problem = _read(config.text(key))
        if problem or not isinstance(value, kind | None):
            what = problem or f"found {type(value).__name__}, must be a {'list' if kind is list else 'mapping'}"
            found.append(f"{key}: {what}")
    return found


def _rbac(config: OperatorConfig) -> Obj:
    said = _fields(_read(config.text(ARGO_RBAC))[0], RBAC_FIELDS)
    if said:
        return said
    more = (one.strip() for one in config.text(ADMINS).split(","))
    admins = [*ADMIN_GROUPS, *(one for one in more if one)]
    policy = "\n".join(f"g, {one}, role:admin" for one in admins)
    return {"defaultPolicy": "role:readonly", "policy": policy, "scopes": "[groups,email]"}


def _checks(config: OperatorConfig) -> list[Obj]:
    found: list[Obj] = [
        {"kind": "PersistentVolumeClaim", "check": UNBOUND_CLAIMS.removesuffix("\n")},
        {"group": "operators.coreos.com", "kind": "Subscription", "check": _script("subscription")},
    ]
    if config.flag(APPLICATION_HEALTH):
        found.append({"group": "argoproj.io", "kind": "Application", "check": _script("application")})
    own, _ = _read(config.text(CUSTOM_HEALTH))
    made = [_fields(one, HEALTH_FIELDS, empty=False) for one in own] if isinstance(own, list) else []
    return found if None in made else [*found, *(one for one in made if one is not None)]


def _fields(value: Any, names: tuple[str, ...], *, empty: bool = True) -> Obj | None:
    """Return the named fields as texts, as Go reads them into a struct; None: one of them is no text."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return None
    found: Obj = {}
    by_name = {name.lower(): name for name in names}
    for key, one in value.items():
        name = by_name.get(str(key).lower())
        if name is None or one is None:
            continue
        if isinstance(one, dict | list):
            return None
        text = one if isinstance(one, str) else str(one).lower() if isinstance(one, bool) else f"{one:.17g}"
        if text or empty:
            found[name] = text
    return found


def _laid(base: Mapping[str, Any], over: Mapping[str, Any]) -> Obj:
    made = dict(base)
    for key, value in over.items():
        there = made.get(key)
        if isinstance(there, Mapping) and isinstance(value, Mapping):
            made[key] = _laid(there, value)
        elif value or key not in made:
            made[key] = value
    return made


def _read(text: str) -> tuple[Any, str]:
    try:
        return (load(text) if text.strip() else None), ""
    except YamlError as error:
        return None, str(error)


@cache
def _fixed() -> Obj:
    found: Obj = load(files(__package__).joinpath("argocd.yaml").read_text(encoding="utf-8"))
    return found


@cache
def _script(name: str) -> str:
    return files(__package__).joinpath(f"{name}_health.lua").read_text(encoding="utf-8").removesuffix("\n")
