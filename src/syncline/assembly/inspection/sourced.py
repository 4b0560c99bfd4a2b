"""A reader of repositories for one look at an Application: with the credentials and the rules that a snapshot has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from syncline.argo.settings import CONFIG_MAP, parse_system
from syncline.assembly.inspection.pulled import PulledCache
from syncline.assembly.sources.reading import GitSourceReader
from syncline.assembly.sources.source_rules import MAPS as RULE_MAPS
from syncline.assembly.sources.source_rules import reach_of, source_rules
from syncline.base.scratch import scratch
from syncline.control.cache import Cache
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig
from syncline.sources.remote.credentials import CERTIFICATES_MAP, KNOWN_HOSTS_MAP, credential_store
from syncline.sources.sourcing import SourceRules

SECRETS = GroupKind("", "Secret")
ACCESS_MAPS = (KNOWN_HOSTS_MAP, CERTIFICATES_MAP)
"""ConfigMaps with trusted hosts and certificates."""


@contextlib.contextmanager
def reader_for(cache: Cache, control_namespace: str, *, allow_local: bool) -> Iterator[GitSourceReader]:
    """Yield a reader of repositories with all readable credentials. ``allow_local``: also of paths on this machine."""
    with scratch() as folder:
        reader = GitSourceReader(folder, allow_local=allow_local)
        secrets = cache.objects(SECRETS, control_namespace)
        reader.learn(credential_store(secrets, _config_maps(cache, control_namespace, ACCESS_MAPS)))
        reader.learn_rules(rules_in(cache, control_namespace))
        reader.learn_reach(reach_of(_config_maps(cache, control_namespace, RULE_MAPS)))
        yield reader


def _config_maps(cache: Cache, namespace: str, names: Iterable[str]) -> list[Obj]:
    refs = [ObjectRef("", "ConfigMap", namespace, name) for name in names]
    return [found for ref in refs if (found := cache.get(ref)) is not None]


def rules_in(cache: Cache, control_namespace: str) -> SourceRules:
    """Return the rules for reading sources from the readable settings and projects."""
    maps = _config_maps(cache, control_namespace, RULE_MAPS)
    # An unreadable project is not an empty one: the user's own credentials are at stake.
    return source_rules(_projects(cache, control_namespace), maps, unseen=True)


def _projects(cache: Cache, namespace: str) -> list[Obj]:
    """Return the projects of the followed Applications and the global ones; all if none is followed."""
    kind = APP_PROJECT.group_kind
    if not isinstance(cache, PulledCache) or not cache.followed:
        return cache.objects(kind, namespace)
    settings = dig(cache.get(ObjectRef("", "ConfigMap", namespace, CONFIG_MAP)), "data", default={}) or {}
    names = [str(dig(app, "spec", "project") or "default") for app in cache.followed]
    names += [one.name for one in parse_system(settings).global_projects]
    refs = [ObjectRef(*kind, namespace, name) for name in dict.fromkeys(names)]
    return [found for ref in refs if (found := cache.get(ref)) is not None]
