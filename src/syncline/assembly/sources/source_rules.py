"""Converts projects and settings of the control namespace into rules for reading sources."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from syncline.argo.parameters import PARAMETERS_MAP, patterns_of
from syncline.argo.project import permits_source
from syncline.argo.settings import parse_system, with_globals
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.yaml import loading as yaml
from syncline.sources.git.signatures import GitPolicy, Keyring, policy_for
from syncline.sources.kustomize.flags import FIELD as BUILD_OPTIONS
from syncline.sources.kustomize.flags import parse_flags
from syncline.sources.providers.reach import Reach
from syncline.sources.remote.address import DEFAULT_NETWORKS, Networks, parse_networks
from syncline.sources.rendering.source_type import SourceType
from syncline.sources.sourcing import NO_RULES, SourceRules

log = logging.getLogger("syncline.assembly")

SETTINGS_MAP = "argocd-cm"
NETWORKS = "source.forbidden.networks"
PGP_KEYS_MAP = "argocd-gpg-keys-cm"
SIGNERS_MAP = "syncline-ssh-signers-cm"
MAPS = (SETTINGS_MAP, PARAMETERS_MAP, PGP_KEYS_MAP, SIGNERS_MAP)
"""Names of the ConfigMaps that are read."""


def source_rules(projects: Iterable[Obj], config_maps: Iterable[Obj], *, unseen: bool = False) -> SourceRules:
    """Return the rules from the AppProjects and ConfigMaps of the control namespace. ``unseen``: what an unknown
    project permits; nothing if all projects are known."""
    maps = {name_of(one): dig(one, "data", default={}) or {} for one in config_maps}
    by_name = _with_globals(projects, maps.get(SETTINGS_MAP, {}))

    def permits(project: str, url: str) -> bool:
        found = by_name.get(project or "default")
        return permits_source(found, url) if found is not None else unseen

    def stamp(project: str) -> str:
        found = by_name.get(project or "default")
        return repr(dig(found, "spec", "sourceRepos", default=[])) if found is not None else ""

    def policy(project: str, url: str) -> GitPolicy | None:
        found = by_name.get(project or "default")
        return policy_for(found, url) if found is not None else None

    def is_off(tool: str) -> bool:
        return str(maps.get(SETTINGS_MAP, {}).get(f"{tool}.enable") or "true") == "false"

    tools = {"helm": SourceType.HELM, "kustomize": SourceType.KUSTOMIZE}
    pgp = maps.get(PGP_KEYS_MAP, {})
    return SourceRules(
        schemes=_schemes(maps.get(SETTINGS_MAP, {})),
        permits=permits,
        stamp=stamp,
        networks=_networks(maps.get(SETTINGS_MAP, {})),
        policy=policy,
        keyring=Keyring(
            tuple(str(pgp[name]) for name in sorted(pgp)), str(maps.get(SIGNERS_MAP, {}).get("allowed_signers") or "")
        ),
        disabled=frozenset(kind for name, kind in tools.items() if is_off(name)),
        jsonnet=not is_off("jsonnet"),
        butane=not is_off("butane"),
        ansible=str(maps.get(SETTINGS_MAP, {}).get("ansible.enable") or "false") == "true",
        kustomize=lambda: parse_flags(str(maps.get(SETTINGS_MAP, {}).get(BUILD_OPTIONS) or "")),
        submodules=str(maps.get(PARAMETERS_MAP, {}).get("reposerver.enable.git.submodule") or "true") != "false",
    )


def _with_globals(projects: Iterable[Obj], settings: Mapping[str, object]) -> dict[str, Obj]:
    """Return the projects by name, each with the lists of the global projects that select it."""
    named = {name_of(one): one for one in projects}
    found = parse_system({key: str(value) for key, value in settings.items() if key == "globalProjects"})
    return {name: with_globals(one, found.global_projects, named) for name, one in named.items()}


def reach_of(config_maps: Iterable[Obj]) -> Reach:
    """Return which Git hosts generators of ApplicationSets may ask: those of ``applicationsetcontroller.allowed.scm.
    providers``, outside the forbidden networks."""
    maps = {name_of(one): dig(one, "data", default={}) or {} for one in config_maps}
    allowed = patterns_of(str(maps.get(PARAMETERS_MAP, {}).get("applicationsetcontroller.allowed.scm.providers") or ""))
    return Reach(allowed=allowed, networks=_networks(maps.get(SETTINGS_MAP, {})))


def _networks(settings: Mapping[str, object]) -> Networks:
    """Parse ``source.forbidden.networks``: comma-separated networks that replace the default, which also applies if
    invalid."""
    given = settings.get(NETWORKS)
    if given is None:
        return DEFAULT_NETWORKS
    try:
        return parse_networks(str(given).replace("\n", ",").split(","))
    except ValueError as error:
        log.warning("%s: %s: %s; the default is used", SETTINGS_MAP, NETWORKS, error)
        return DEFAULT_NETWORKS


def _schemes(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Parse ``helm.valuesFileSchemes``: a YAML or comma-separated list; the default if absent."""
    given = str(settings.get("helm.valuesFileSchemes") or "").strip()
    if not given:
        return NO_RULES.schemes
    try:
        value = yaml.load(given, file="helm.valuesFileSchemes")
    except yaml.YamlError:
        value = None
    listed = value if isinstance(value, list) else given.split(",")
    return tuple(str(one).strip().lower() for one in listed if str(one).strip())
