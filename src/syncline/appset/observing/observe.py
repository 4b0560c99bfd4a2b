"""What a plan for one ApplicationSet is made of: :class:`SetObserved`, read from the cache; frozen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from syncline.apply.asking import Asking as Evaluating
from syncline.apply.diff.jq import Answers
from syncline.appset.observing.kinds import Listed
from syncline.appset.questions import Answer, Facts, Question
from syncline.appset.settings import SetSettings, parse_settings
from syncline.appset.writing.applications import is_owner
from syncline.argo.clusters import Cluster, clusters_of, is_cluster_secret
from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.settings import CONFIG_MAP
from syncline.control.cache import Snapshot
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    resource_version,
    uid_of,
)

REFRESH: Final = "argocd.argoproj.io/application-set-refresh"
"""Annotation of a set: answers are asked for again, whatever is known; the controller removes it."""
SECRETS: Final = GroupKind("", "Secret")
CONFIG_MAPS: Final = GroupKind("", "ConfigMap")
OWNED_INDEX: Final = "syncline-application-set"
"""Index of Applications by ``NAMESPACE/NAME`` of the set that controls them."""


@dataclass(frozen=True)
class SetObserved:
    """Everything that a plan depends on beside the time."""

    obj: Obj
    settings: SetSettings = field(default_factory=SetSettings)
    facts: Facts = field(default_factory=Facts, repr=False)
    clusters: tuple[Cluster, ...] = ()
    """All destinations."""
    apps: Mapping[str, Obj] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """All Applications of the set's namespace, by name."""
    unread: tuple[str, ...] = ()
    """Why something that every set needs cannot be read; with any of them nothing is written."""
    unlisted: tuple[str, ...] = ()
    """Kinds that were not listed yet since the start."""
    expressions: Answers = field(default_factory=Answers, repr=False)
    """Known results of jq expressions."""
    evaluating: Evaluating | None = None
    """The expressions that are being evaluated in the background."""
    rows_before: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Rows of each generator element when the set was last in order; empty: not known."""
    request: str = ""
    """The id of the refresh that the annotation asks for; empty: this version of the set."""
    listed: Mapping[tuple[str, str], Listed] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Objects of decision resources by apiVersion and plural, with their age."""

    @property
    def ref(self) -> ObjectRef:
        return ref_of(self.obj)

    @cached_property
    def current(self) -> tuple[Obj, ...]:
        """Return the Applications that the set controls, by name."""
        return tuple(app for app in self.apps.values() if is_controlled(app, name_of(self.obj)))

    @property
    def refresh_request(self) -> str:
        """Return an id of the requested refresh, or ""."""
        if REFRESH not in annotations_of(self.obj):
            return ""
        return self.request or f"{uid_of(self.obj)}/{resource_version(self.obj)}"

    @property
    def project(self) -> str:
        """Return the project in the template if it is literal, else the namespace: whose share of work counts."""
        found = str(dig(self.obj, "spec", "template", "spec", "project", default="") or "")
        return found if found and "{{" not in found else namespace_of(self.obj)


def is_controlled(app: Obj, appset_name: str) -> bool:
    """Return whether a set of this name controls the Application."""
    return any(one.get("controller") and is_owner(one, appset_name) for one in owner_references(app))


def owned_by(app: Obj) -> Iterable[str]:
    """Return the values of :data:`OWNED_INDEX`."""
    for one in owner_references(app):
        if one.get("controller") and is_owner(one, str(one.get("name"))):
            yield f"{namespace_of(app)}/{one.get('name')}"


def without_credentials(secret: Obj) -> Obj | None:
    """Return a cluster Secret without what only a connection needs; None for other Secrets."""
    if not is_cluster_secret(secret):
        return None
    data = dig(secret, "data", default={}) or {}
    shown = {key: data[key] for key in ("name", "server", "project", "namespaces", "clusterResources") if key in data}
    metadata = {"name": name_of(secret), "namespace": namespace_of(secret), "uid": uid_of(secret)}
    marks = {"labels": labels_of(secret), "annotations": annotations_of(secret)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, **marks}, "data": shown}


class Surroundings:
    """What all sets share, parsed once per version: settings, clusters, projects."""

    def __init__(self, control_namespace: str) -> None:
        self.control_namespace = control_namespace
        self._versions: tuple[object, ...] = ()
        self._settings = SetSettings()
        self._here = True
        self._clusters_at: tuple[object, ...] = ()
        self._secrets: tuple[Obj, ...] = ()
        self._clusters: tuple[Cluster, ...] = ()

    def settings(self, cache: Snapshot) -> SetSettings:
        found = [
            cache.get(ObjectRef(*CONFIG_MAPS, self.control_namespace, name)) for name in (PARAMETERS_MAP, CONFIG_MAP)
        ]
        versions = tuple(None if one is None else resource_version(one) for one in found)
        if versions != self._versions:
            parameters, system = (dig(one, "data", default={}) or {} for one in found)
            self._versions, self._settings = versions, parse_settings(parameters)
            self._here = system.get("cluster.inClusterEnabled") != "false"
        return self._settings

    def secrets(self, cache: Snapshot) -> tuple[tuple[Obj, ...], tuple[Cluster, ...]]:
        """Return the cluster Secrets of the control namespace without credentials, and all destinations."""
        self.settings(cache)
        at = cache.changes(SECRETS), self._here, id(cache)
        if at != self._clusters_at:
            self._clusters_at = at
            seen = (one for one in cache.views(SECRETS, without_credentials) if one is not None)
            found = tuple(one for one in seen if namespace_of(one) == self.control_namespace)
            if found != self._secrets:  # other Secrets change too, and equal facts are the same object
                self._secrets = found
            self._clusters = clusters_of(found, here=self._here)
        return self._secrets, self._clusters

    def projects(self, cache: Snapshot) -> frozenset[str]:
        return frozenset(map(name_of, cache.objects(APP_PROJECT.group_kind, self.control_namespace)))


def observe_set(
    cache: Snapshot,
    ref: ObjectRef,
    around: Surroundings,
    answers: Mapping[Question, Answer],
    listed: Mapping[tuple[str, str], Listed] = MappingProxyType({}),
) -> SetObserved | None:
    """Read a set and what it depends on; None: there is none. ``answers``: all that are known; ``listed``: objects of
    decision resources by apiVersion and plural."""
    appset = cache.get(ref)
    if appset is None:
        return None
    settings = around.settings(cache)
    secrets, clusters = around.secrets(cache)
    control = around.control_namespace
    maps = config_map_names(appset)
    apps = {name_of(app): app for app in cache.objects(APPLICATION.group_kind, ref.namespace)}
    facts = Facts(
        control_namespace=control,
        clusters=secrets,
        projects=around.projects(cache),
        config_maps=_config_maps(cache, control, maps),
        decisions={key: one.objects for key, one in listed.items() if not one.error},
        unread={
            **_unread_maps(cache, control, maps),
            **{f"{version}/{plural}": one.error for (version, plural), one in listed.items() if one.error},
        },
        answers=answers,
        doublestar=settings.doublestar,
        hidden=settings.hidden,
        scm_enabled=settings.scm_enabled,
        allowed_scm=settings.allowed_scm,
        requeue_s=settings.requeue_s,
    )
    needed = (
        ObjectRef(*APPLICATION.group_kind, ref.namespace, ""),
        ObjectRef(*APP_PROJECT.group_kind, control, ""),
        ObjectRef(*SECRETS, control, ""),
        ObjectRef(*CONFIG_MAPS, control, PARAMETERS_MAP),
    )
    unread = tuple(f"cannot read {one.kind}s: {why}" for one in needed if (why := cache.unread(one)))
    unlisted = tuple(one.kind for one in needed if not cache.unread(one) and _is_unlisted(cache, one))
    return SetObserved(appset, settings, facts, clusters, MappingProxyType(apps), unread, unlisted, listed=listed)


def _is_unlisted(cache: Snapshot, ref: ObjectRef) -> bool:
    """Return whether objects of a kind that the cluster serves may exist that the cache does not have yet."""
    return not cache.has_synced(ref.group_kind) and cache.mapper.preferred(ref.group_kind) is not None


def _config_maps(cache: Snapshot, namespace: str, names: Iterable[str]) -> Mapping[str, Obj]:
    """Return ConfigMaps by name; all of the namespace if a name is only known when rows are."""
    wanted = tuple(names)
    if any("{{" in name for name in wanted):
        return MappingProxyType({name_of(one): one for one in cache.objects(CONFIG_MAPS, namespace)})
    found = {name: cache.get(ObjectRef(*CONFIG_MAPS, namespace, name)) for name in wanted}
    return MappingProxyType({name: one for name, one in found.items() if one is not None})


def _unread_maps(cache: Snapshot, namespace: str, names: Iterable[str]) -> dict[str, str]:
    why = cache.unread(ObjectRef(*CONFIG_MAPS, namespace, ""))
    return {f"ConfigMap/{name}": why for name in names} if why else {}


MOST_NESTED: Final = 8
"""Depth to which generators are searched; a matrix or merge nests twice."""


def generators_of(appset: Obj) -> Iterable[tuple[str, Any]]:
    """Yield each generator of a set at any depth: its kind (``git``) and its fields."""
    yield from _generators(dig(appset, "spec", "generators"), MOST_NESTED)


def _generators(listed: Any, depth: int) -> Iterable[tuple[str, Any]]:
    for element in listed if isinstance(listed, list) and depth else ():
        for kind, fields in element.items() if isinstance(element, dict) else ():
            yield kind, fields
            if kind in ("matrix", "merge") and isinstance(fields, dict):
                yield from _generators(fields.get("generators"), depth - 1)


def config_map_names(appset: Obj) -> tuple[str, ...]:
    """Return the ConfigMaps that plugins and decision resources of a set name."""
    names: list[str] = []
    for kind, fields in generators_of(appset):
        found = fields.get("configMapRef") if isinstance(fields, dict) else None
        if kind == "plugin":
            found = dig(found, "name")
        if kind in ("plugin", "clusterDecisionResource") and isinstance(found, str) and found:
            names.append(found)
    return tuple(dict.fromkeys(names))


def decision_kinds(appset: Obj, config_maps: Mapping[str, Obj]) -> tuple[tuple[str, str], ...]:
    """Return apiVersion and plural of the decision resources of a set, as far as its ConfigMaps are known."""
    found: dict[tuple[str, str], None] = {}
    for kind, fields in generators_of(appset):
        if kind == "clusterDecisionResource" and isinstance(fields, dict):
            data = dig(config_maps.get(str(fields.get("configMapRef") or "")), "data", default={}) or {}
            if data.get("apiVersion") and data.get("kind"):
                found.setdefault((str(data["apiVersion"]), str(data["kind"])))
    return tuple(found)


def uses_clusters(appset: Obj) -> bool:
    """Return whether any generator of the set makes rows of clusters."""
    return any(kind in ("clusters", "clusterDecisionResource") for kind, _ in generators_of(appset))
