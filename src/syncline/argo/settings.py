"""Parses ``argocd-cm``: tracking, ignored differences, health scripts, excluded kinds.

Observation parses it once per version of the ConfigMap; plans use the frozen result. Keys and meaning: Argo CD
``util/settings`` (reference argocd-app §§3.2, 3.4-3.6, 5.11, 2.2). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from syncline.apply.diff.jq import Answers, Overran
from syncline.apply.diff.model import DEFAULT_OVERRIDES, IgnoreRule, KnownTypeField, Override
from syncline.apply.health import Health, HealthStatus
from syncline.apply.health.overrides import (
    HealthQuestion,
    HealthScript,
    failed_health,
    judged_with,
    parse_overrides,
    question_of,
)
from syncline.argo.clusters import Cluster, clusters_of
from syncline.argo.customizations import ALL, customized, setting_value, yaml_map
from syncline.argo.excluded import ResourceFilter
from syncline.argo.hydrator import AUTHOR, EMAIL, HydrationSettings
from syncline.argo.parameters import Parameters
from syncline.argo.project import merge_global
from syncline.argo.tracking import INSTANCE_LABEL, Tracking, TrackingMethod
from syncline.kube.objects import Obj, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.kube.text.durations import DurationError, parse_duration

CONFIG_MAP = "argocd-cm"
STATUS = "ignoreResourceStatusField"
STATUS_KINDS = {"crd": "apiextensions.k8s.io/CustomResourceDefinition", "none": "", "off": "", "false": ""}
"""Kinds whose ``status`` is not compared, by the option's value; any other value: all kinds."""


AWAITED = Health(HealthStatus.PROGRESSING, "its health script has not answered yet", unsettled=True, awaited=True)


@dataclass(frozen=True, slots=True)
class GlobalProject:
    """Projects with these labels also get the lists of project ``name``."""

    name: str
    selector: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SystemSettings:
    """``problems``: errors of invalid settings; with any of them nothing may be compared or applied."""

    tracking: Tracking | None = None
    """None: not set."""
    overrides: Mapping[str, Override] = field(default_factory=lambda: DEFAULT_OVERRIDES)
    excluded: ResourceFilter = field(default_factory=ResourceFilter)
    ignore_aggregated_roles: bool = False
    health: Mapping[str, HealthScript] = field(default_factory=dict)
    global_projects: tuple[GlobalProject, ...] = ()
    poll_s: float | None = None
    """Seconds between reads of a repository; None: not set."""
    impersonates: bool = False
    """Applications are synced as the service accounts in their projects."""
    hidden_annotations: tuple[str, ...] = ()
    """Annotations of Secrets that are masked like their values (``resource.sensitive.mask.annotations``)."""
    in_cluster: bool = True
    """Whether the local cluster is a destination (``cluster.inClusterEnabled``)."""
    hydration: HydrationSettings = field(default_factory=HydrationSettings)
    problems: tuple[str, ...] = ()

    def clusters(self, secrets: Iterable[Obj]) -> tuple[Cluster, ...]:
        """Return the destinations that Secrets declare and these settings permit."""
        return clusters_of(secrets, here=self.in_cluster)


@dataclass(frozen=True)
class System:
    """Data that all reconciles of one version of the settings share."""

    settings: SystemSettings = field(default_factory=SystemSettings)
    parameters: Parameters = field(default_factory=Parameters)
    answers: Answers = field(default_factory=Answers, repr=False)
    """Known results of user scripts and expressions."""

    def health(self, obj: Obj) -> Health | None:
        """Return the health by the known results of user scripts, and by the rules of kinds."""
        return self._judge(obj)

    @cached_property
    def _judge(self) -> Callable[[Obj], Health | None]:
        return judged_with(self.settings.health, self._answered)

    def _answered(self, question: HealthQuestion) -> Health:
        found = self.answers.find(question)
        if isinstance(found, Overran):
            return replace(failed_health(f"the script {found.again}", question.obj), unsettled=True)
        return found if isinstance(found, Health) else AWAITED

    def unjudged(self, objects: Iterable[Obj]) -> tuple[HealthQuestion, ...]:
        """Return the scripts to evaluate before these objects can be judged."""
        if not any(entry.script for entry in self.settings.health.values()):
            return ()
        questions = (question_of(self.settings.health, obj) for obj in objects)
        return tuple(one for one in questions if one is not None and self.answers.find(one) is None)


def parse_system(data: Mapping[str, str]) -> SystemSettings:
    """Parse ``data`` of the ConfigMap; never raises: errors are in ``problems``."""
    problems: list[str] = []

    def read(parse: Any, otherwise: Any) -> Any:
        try:
            return parse(data)
        except (ValueError, TypeError, AttributeError) as error:
            problems.append(f"{CONFIG_MAP}: {error}")
            return otherwise

    options = read(lambda d: yaml_map(d.get("resource.compareoptions", ""), "resource.compareoptions"), {})
    hidden = data.get("resource.sensitive.mask.annotations", "").split(",")
    return SystemSettings(
        tracking=_tracking(data),
        hidden_annotations=tuple(name.strip() for name in hidden if name.strip()),
        overrides=read(lambda d: _overrides(d, options), DEFAULT_OVERRIDES),
        excluded=read(_filter, ResourceFilter()),
        ignore_aggregated_roles=options.get("ignoreAggregatedRoles") is True,
        health=read(parse_overrides, {}),
        global_projects=read(_globals, ()),
        poll_s=read(_poll, None),
        impersonates=data.get("application.sync.impersonation.enabled") == "true",
        hydration=HydrationSettings(
            message=data.get("sourceHydrator.commitMessageTemplate", ""),
            readme=data.get("sourceHydrator.readmeMessageTemplate", ""),
            author=data.get("commit.author.name") or AUTHOR,
            email=data.get("commit.author.email") or EMAIL,
        ),
        in_cluster=data.get("cluster.inClusterEnabled") != "false",
        problems=tuple(problems),
    )


def _tracking(data: Mapping[str, str]) -> Tracking | None:
    keys = ("application.resourceTrackingMethod", "application.instanceLabelKey", "installationID")
    if not any(data.get(key) for key in keys):
        return None
    method, label, installation = (data.get(key, "").strip() for key in keys)
    return Tracking(TrackingMethod.parse(method or "annotation"), label or INSTANCE_LABEL, installation)


def _overrides(data: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Override]:
    """Return overrides by ``GROUP/KIND``; ``all`` becomes the pattern of every kind."""
    ignored = {key: _mapping(value, key) for key, value in customized(data, "ignoreDifferences").items()}
    known = {key: _known_types(value, key) for key, value in customized(data, "knownTypeFields").items()}
    pattern = STATUS_KINDS.get(str(options.get(STATUS, ALL)).lower(), "*/*")
    found: dict[str, Override] = {}
    for key in {*ignored, *known}:
        found["*/*" if key == ALL else key] = Override(IgnoreRule.parse(ignored.get(key, {})), known.get(key, ()))
    if pattern:
        before = found.get(pattern, Override())
        pointers = tuple(dict.fromkeys((*before.ignore.json_pointers, "/status")))
        rule = IgnoreRule(
            json_pointers=pointers,
            jq_expressions=before.ignore.jq_expressions,
            managers=before.ignore.managers,
        )
        found[pattern] = Override(rule, before.known_types)
    return found


def _mapping(value: Any, key: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return yaml_map(str(value), f"resource.customizations.ignoreDifferences of {key}")


def _known_types(value: Any, key: str) -> tuple[KnownTypeField, ...]:
    setting = f"resource.customizations.knownTypeFields of {key}"
    listed = value if isinstance(value, list) else setting_value(str(value), setting)
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise ValueError(f"{setting}: found {type(listed).__name__}, must be a list of {{field, type}}")
    return tuple(KnownTypeField(str(one.get("field") or ""), str(one.get("type") or "")) for one in listed)


def _filter(data: Mapping[str, str]) -> ResourceFilter:
    lists = []
    for key in ("resource.exclusions", "resource.inclusions"):
        value = setting_value(data.get(key, ""), key)
        if value is not None and (not isinstance(value, list) or not all(isinstance(one, dict) for one in value)):
            raise ValueError(f"{key}: found {type(value).__name__}, must be a list of {{apiGroups, kinds, clusters}}")
        lists.append(value or [])
    return ResourceFilter.parse(*lists)


def _globals(data: Mapping[str, str]) -> tuple[GlobalProject, ...]:
    value = setting_value(data.get("globalProjects", ""), "globalProjects")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, dict) and one.get("projectName") for one in value):
        raise ValueError(
            f"globalProjects: found {type(value).__name__}, must be a list of {{labelSelector, projectName}}"
        )
    return tuple(GlobalProject(str(one["projectName"]), one.get("labelSelector") or {}) for one in value)


def _poll(data: Mapping[str, str]) -> float | None:
    text = data.get("timeout.reconciliation", "").strip()
    if not text:
        return None
    try:
        return parse_duration(text).total_seconds()
    except DurationError as error:
        raise ValueError(f"timeout.reconciliation: {error}") from error


def with_globals(project: Obj, globals_: tuple[GlobalProject, ...], named: Mapping[str, Obj]) -> Obj:
    """Return ``project`` with the lists of the global projects that select it; ``named``: projects by name."""
    for found in globals_of(project, globals_, named):
        project = merge_global(project, found)
    return project


def globals_of(project: Obj, globals_: tuple[GlobalProject, ...], named: Mapping[str, Obj]) -> list[Obj]:
    """Return the global projects that select ``project``; ``named``: projects by name."""
    labels, own = labels_of(project), name_of(project)
    chosen = (entry.name for entry in globals_ if entry.name != own and _selects(entry.selector, labels))
    return [named[name] for name in chosen if name in named]


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches; an empty one selects every project."""
    try:
        return label_selector_from(selector).matches(labels)
    except SelectorError:
        return False
