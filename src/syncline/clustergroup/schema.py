"""What values the chart allows (its ``values.schema.json``), as data; pure. :func:`violations`.

Only lists are looked into: entries of the map forms are not checked, as upstream. A closed object refuses other keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.clustergroup.errors import Violation

_NUMBERS: Final = (int, float)


@dataclass(frozen=True)
class Rule:
    """``types``: names of JSON types, any if empty; ``apart``: upstream tests them one by one, and each that does not
    fit is a violation of its own beside the whole."""

    types: tuple[str, ...] = ()
    fields: Mapping[str, Rule] = field(default_factory=dict)
    items: Rule | None = None
    closed: bool = False
    required: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    apart: bool = False
    never_both: tuple[str, str] | None = None


def _texts(*names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, TEXT)


def _any_of(*types: str, items: Rule | None = None) -> Rule:
    return Rule(types, items=items, apart=True)


def _closed(fields: Mapping[str, Rule], *required: str) -> Rule:
    return Rule(("object",), fields, closed=True, required=required)


def _open(fields: Mapping[str, Rule], *required: str) -> Rule:
    return Rule(("object",), fields, required=required)


TEXT, TRUTH, LIST, MAP, WHOLE = (Rule((one,)) for one in ("string", "boolean", "array", "object", "integer"))


def _list_of(rule: Rule) -> Rule:
    return Rule(("array",), items=rule)


_LABELLED = {"name": TEXT, "labels": MAP, "annotations": MAP}
_NAMESPACE = Rule(("object", "string"), {**_LABELLED, "disabled": TRUTH}, apart=True)
_SEQUENCE = _closed(
    {
        **_texts("syncWave", "resourceType", "resourceName", "resourceNamespace", "hookType", "image"),
        "command": LIST,
        "disabled": TRUTH,
    }
)
_SUBSCRIPTION = _closed(
    {
        **_texts("name", "namespace", "sourceNamespace", "source", "channel", "csv", "version"),
        **_texts("upgradeConstraintPolicy", "serviceAccountName"),
        "namespaces": LIST,
        "installPlanApproval": Rule(("string",), choices=("Manual", "Automatic")),
        "annotations": MAP,
        "config": LIST,
        "disabled": TRUTH,
        "sequenceJob": _SEQUENCE,
        "channels": _list_of(TEXT),
    },
    "name",
)
_EXTRA_FIELDS = ("HubClusterDomain", "LocalClusterDomain", "RepoURL", "TargetRevision", "Namespace", "PatternName")
_APPLICATION = Rule(
    ("object",),
    {
        **_texts("name", "repoURL", "targetRevision", "chart", "chartVersion", "namespace", "project", "argoProject"),
        "path": TEXT,
        "kustomize": TRUTH,
        "disabled": TRUTH,
        **dict.fromkeys(("plugin", "overrides", "syncPolicy", "annotations"), MAP),
        **dict.fromkeys(("extraValueFiles", "fileParameters", "ignoreDifferences"), LIST),
        **{f"extra{name}Fields": LIST for name in _EXTRA_FIELDS},
    },
    required=("name",),
    never_both=("project", "argoProject"),
)
_PLUGIN = _closed(
    {
        **_texts("name", "image", "imagePullPolicy", "pluginConfig"),
        **dict.fromkeys(("env", "volumeMounts", "pluginArgs"), LIST),
    },
    "name",
    "image",
)
_ARGOCD = _closed(
    {
        "configManagementPlugins": _list_of(_PLUGIN),
        **dict.fromkeys(("initContainers", "volumes", "volumeMounts", "env"), LIST),
        "resourceTrackingMethod": Rule(("string",), choices=("annotation", "label", "annotation+label")),
        "resourceExclusions": TEXT,
        "resourceHealthChecks": _list_of(_closed(_texts("check", "group", "kind"))),
        "resourceActions": _list_of(_closed(_texts("action", "group", "kind"))),
        "rbac": MAP,
    }
)
_DEV_MODE = _closed(
    {
        "enabled": TRUTH,
        **_texts("requirementsFile", "requirementsContent", "ansibleCfgFile", "ansibleCfgContent"),
    },
    "enabled",
)
_JOB = _closed(
    {
        **_texts("name", "playbook", "image", "tags", "verbosity"),
        "timeout": Rule(("integer", "string")),
        "extravars": LIST,
    },
    "name",
    "playbook",
)
_IMPERATIVE = _closed(
    {
        "jobs": _list_of(_JOB),
        "ansibleDevMode": _DEV_MODE,
        "namespace": Rule(("string",), choices=("imperative",)),
        "imagePullPolicy": Rule(("string",), choices=("Always", "IfNotPresent", "Never")),
        "activeDeadlineSeconds": WHOLE,
        "verbosity": Rule(("string",), choices=("", "-v", "-vv", "-vvv", "-vvvv")),
        "extraPlaybookArgs": _list_of(TEXT),
        "clusterRoleYaml": Rule(("string", "array")),
        **dict.fromkeys(("serviceAccountCreate", "adminServiceAccountCreate"), TRUTH),
        **_texts("image", "valuesConfigMap", "cronJobName", "jobName", "schedule", "serviceAccountName"),
        **_texts("insecureUnsealVaultInsideClusterSchedule", "clusterRoleName", "roleName", "roleYaml"),
        **_texts("adminServiceAccountName", "adminClusterRoleName", "vaultNamespace"),
    },
    "jobs",
)
_MANAGED = _closed(
    {
        **_texts("name", "targetRevision"),
        "acmlabels": _list_of(_closed(_texts("name", "value"), "name", "value")),
        "helmOverrides": _list_of(
            _closed({"name": TEXT, "value": _any_of("string", "boolean")}, "name", "value"),
        ),
        **dict.fromkeys(("clusterPools", "clusterDeployments", "clusterSelector"), MAP),
    }
)
_GROUP = _closed(
    {
        "name": TEXT,
        "targetCluster": TEXT,
        "isHubCluster": Rule(("boolean", "null")),
        "sharedValueFiles": LIST,
        "scheduler": MAP,
        "namespaces": _any_of("array", "object", items=_NAMESPACE),
        "nodes": _any_of("array", "object", items=_open(_LABELLED)),
        "indexImages": _any_of("array", "object", items=_closed(_texts("name", "image"))),
        **dict.fromkeys(("operatorgroupExcludes", "operatorgroupExcludeTargetNS"), _list_of(TEXT)),
        "subscriptions": _any_of("null", "array", "object", items=_SUBSCRIPTION),
        **dict.fromkeys(("argoProjects", "projects"), _any_of("null", "array", "object", items=TEXT)),
        "applications": _any_of("array", "object", items=_APPLICATION),
        "argoCD": _ARGOCD,
        "imperative": _IMPERATIVE,
        "extraObjects": MAP,
        "managedClusterGroups": _any_of("array", "object", items=_MANAGED),
    },
    "applications",
    "name",
    "namespaces",
)
_OPTIONS = _closed(
    {
        **dict.fromkeys(("useCSV", "autoApproveManualInstallPlans"), TRUTH),
        **_texts("syncPolicy", "installPlanApproval"),
        "applicationRetryLimit": WHOLE,
    },
    "installPlanApproval",
    "syncPolicy",
    "useCSV",
)
_GLOBAL = _open(
    {
        **_texts("pattern", "clusterDomain", "localClusterDomain", "targetRevision", "repoURL", "hubClusterDomain"),
        **_texts("namespace", "deletePattern", "gitOpsSubNamespace"),
        "git": _open(_texts("hostname", "account", "email", "dev_revision")),
        "options": _OPTIONS,
        "secretStore": _closed(_texts("backend")),
        "singleArgoCD": TRUTH,
    },
    "options",
)
_MAIN = _open(
    {
        **_texts("clusterGroupName", "multiSourceRepoUrl", "experimentalCapabilities", "analyticsUUID"),
        "extraParameters": LIST,
        "git": _closed(_texts("repoUpstreamURL", "repoURL", "revision")),
        "gitops": _open(_texts("channel", "operatorSource")),
        "patternsOperator": _open(_texts("channel", "source")),
        "multiSourceConfig": _open({"enabled": TRUTH, "helmRepoUrl": TEXT}),
    },
    "clusterGroupName",
)
VALUES: Final = _open(
    {
        "secretLoader": _closed({"disabled": TRUTH}),
        "secretStore": _closed(_texts("name", "kind"), "name", "kind"),
        "main": _MAIN,
        "global": _GLOBAL,
        "clusterGroup": _GROUP,
    },
    "clusterGroup",
)


def violations(values: Mapping[str, Any]) -> list[Violation]:
    """Return everything that the schema refuses, sorted by path."""
    return sorted(set(_judge(values, VALUES, "")))


def _judge(value: Any, rule: Rule, path: str) -> Iterator[Violation]:
    found = kind_of(value)
    if rule.types and not any(_fits(value, found, one) for one in rule.types):
        if rule.apart:
            yield Violation(path, "'anyOf' failed")
            yield from (Violation(path, f"got {found}, want {one}") for one in rule.types)
        else:
            yield Violation(path, f"got {found}, want {' or '.join(rule.types)}")
        if found in ("string", "number", "boolean", "null") or not rule.apart:
            return
    if rule.choices and value not in rule.choices:
        yield Violation(path, "value must be one of " + ", ".join(f"'{one}'" for one in rule.choices))
    if isinstance(value, dict):
        yield from _judge_map(value, rule, path)
    if isinstance(value, list) and rule.items is not None:
        for number, one in enumerate(value):
            yield from _judge(one, rule.items, f"{path}/{number}")


def _judge_map(value: Mapping[str, Any], rule: Rule, path: str) -> Iterator[Violation]:
    missing = [one for one in rule.required if one not in value]
    if missing:
        word = "property" if len(missing) == 1 else "properties"
        yield Violation(path, f"missing {word} " + ", ".join(f"'{one}'" for one in missing))
    unknown = sorted(key for key in value if key not in rule.fields) if rule.closed else []
    if unknown:
        yield Violation(path, "additional properties " + ", ".join(f"'{one}'" for one in unknown) + " not allowed")
    if rule.never_both is not None and all(one in value for one in rule.never_both):
        yield Violation(path, "'not' failed")
    if rule is _GROUP and value.get("projects") and "argoProjects" in value:
        yield Violation(path, "'not' failed")  # upstream tests `projects` twice
    for key, inner in rule.fields.items():
        if key in value:
            yield from _judge(value[key], inner, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")


def kind_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, _NUMBERS):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _fits(value: Any, found: str, wanted: str) -> bool:
    if wanted == "integer":
        return found == "number" and float(value).is_integer()
    return found == wanted
