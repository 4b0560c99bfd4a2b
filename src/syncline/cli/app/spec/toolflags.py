"""The flags of ``app create`` and ``app set`` for one tool: Helm, Kustomize, Jsonnet, plugins.

Used by ``flags``. Takes a source and flags, and changes the source. Names and rules: Argo CD ``cmd/util/app.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj

Flags = Mapping[str, Any]


def _many(flag: str, name: str, text: str, metavar: str | None = None) -> Callable[..., Any]:
    return click.option(flag, name, multiple=True, metavar=metavar, help=f"{text}; repeatable.")


def _switch(flag: str, text: str) -> Callable[..., Any]:
    return click.option(f"--{flag}/--no-{flag}", default=None, help=text)


TOOL_OPTIONS = (
    _many("--helm-set-string", "helm_set_string", "Helm parameter that stays text", "KEY=VALUE"),
    _many("--helm-set-file", "helm_set_file", "Helm parameter from a file of the repository", "KEY=PATH"),
    click.option("-p", "--parameter", "parameters", multiple=True, metavar="KEY=VALUE", help="As --helm-set."),
    click.option("--values-literal-file", metavar="FILE", help="Inline Helm values, as a mapping of YAML."),
    _switch("ignore-missing-value-files", "Helm: leave out values files that are not there."),
    _switch("helm-pass-credentials", "Helm: credentials go to every host of a chart repository."),
    _switch("helm-skip-crds", "Helm: leave definitions out."),
    _switch("helm-skip-schema-validation", "Helm: do not check values."),
    _switch("helm-skip-tests", "Helm: leave tests out."),
    click.option("--helm-namespace", help="Helm: the namespace that templates see."),
    click.option("--helm-kube-version", help="Helm: the version of Kubernetes that templates see."),
    _many("--helm-api-versions", "helm_api_versions", "Helm: an API version that templates see"),
    click.option("--helm-version", help="Taken, without a meaning: there is one Helm."),
    click.option("--kustomize-version", help="Taken, without a meaning: there is one engine."),
    _many("--kustomize-replica", "kustomize_replicas", "Kustomize replicas", "NAME=COUNT"),
    _many("--kustomize-common-label", "kustomize_labels", "Kustomize label", "KEY=VALUE"),
    _many("--kustomize-common-annotation", "kustomize_annotations", "Kustomize annotation", "KEY=VALUE"),
    _switch("kustomize-label-without-selector", "Kustomize: labels do not reach selectors."),
    _switch("kustomize-label-include-templates", "Kustomize: labels reach pod templates."),
    _switch("kustomize-force-common-label", "Kustomize: labels replace those that are there."),
    _switch("kustomize-force-common-annotation", "Kustomize: annotations replace those that are there."),
    _switch("ignore-missing-components", "Kustomize: leave out components that are not there."),
    click.option("--kustomize-kube-version", help="Kustomize: the version of Kubernetes that charts see."),
    _many("--kustomize-api-versions", "kustomize_api_versions", "Kustomize: an API version that charts see"),
    _many("--jsonnet-tla-str", "tla_texts", "Jsonnet top-level argument", "KEY=VALUE"),
    _many("--jsonnet-tla-code", "tla_codes", "Jsonnet top-level argument that is code", "KEY=CODE"),
    _many("--jsonnet-ext-var-str", "ext_texts", "Jsonnet external variable", "KEY=VALUE"),
    _many("--jsonnet-ext-var-code", "ext_codes", "Jsonnet external variable that is code", "KEY=CODE"),
    _many("--jsonnet-libs", "jsonnet_libs", "Jsonnet library folder"),
    click.option("--config-management-plugin", help="Name of a plugin."),
    _many("--plugin-env", "plugin_envs", "Variable of a plugin", "NAME=VALUE"),
)
TOOL_FIELDS = {
    "ignore_missing_value_files": ("helm", "ignoreMissingValueFiles"),
    "helm_pass_credentials": ("helm", "passCredentials"),
    "helm_skip_crds": ("helm", "skipCrds"),
    "helm_skip_schema_validation": ("helm", "skipSchemaValidation"),
    "helm_skip_tests": ("helm", "skipTests"),
    "helm_namespace": ("helm", "namespace"),
    "helm_kube_version": ("helm", "kubeVersion"),
    "helm_version": ("helm", "version"),
    "kustomize_version": ("kustomize", "version"),
    "kustomize_label_without_selector": ("kustomize", "labelWithoutSelector"),
    "kustomize_label_include_templates": ("kustomize", "labelIncludeTemplates"),
    "kustomize_force_common_label": ("kustomize", "forceCommonLabels"),
    "kustomize_force_common_annotation": ("kustomize", "forceCommonAnnotations"),
    "ignore_missing_components": ("kustomize", "ignoreMissingComponents"),
    "kustomize_kube_version": ("kustomize", "kubeVersion"),
    "config_management_plugin": ("plugin", "name"),
}
"""Flag → block and field of a source."""
TOOL_LISTS = (
    "helm_set",
    "helm_set_string",
    "helm_set_file",
    "parameters",
    "helm_api_versions",
    "kustomize_replicas",
    "kustomize_labels",
    "kustomize_annotations",
    "kustomize_api_versions",
    "tla_texts",
    "tla_codes",
    "ext_texts",
    "ext_codes",
    "jsonnet_libs",
    "plugin_envs",
    "values_literal_file",
)
"""Flags with their own rules."""
_PLAIN_LISTS = {
    "helm_api_versions": ("helm", "apiVersions"),
    "kustomize_api_versions": ("kustomize", "apiVersions"),
}
_MAPS = {"kustomize_labels": "commonLabels", "kustomize_annotations": "commonAnnotations"}
_VARIABLES = {
    "tla_texts": ("tlas", False),
    "tla_codes": ("tlas", True),
    "ext_texts": ("extVars", False),
    "ext_codes": ("extVars", True),
}


def put(source: Obj, place: tuple[str, ...], value: Any) -> None:
    """Set a field of ``source``, or of a block in it."""
    if len(place) == 1:
        source[place[0]] = value
    else:
        source[place[0]] = {**(source.get(place[0]) or {}), place[1]: value}


def with_tool_flags(source: Obj, flags: Flags) -> None:
    """Change ``source`` in place. Raises :class:`CommandFailed`."""
    for flag, place in TOOL_FIELDS.items():
        if flags.get(flag) is not None:
            put(source, place, flags[flag])
    for flag, place in _PLAIN_LISTS.items():
        if flags.get(flag):
            put(source, place, list(flags[flag]))
    _helm(source, flags)
    _kustomize(source, flags)
    _jsonnet(source, flags)
    if flags.get("plugin_envs"):
        given = [{"name": name, "value": value} for name, value in _pairs("--plugin-env", flags["plugin_envs"])]
        put(source, ("plugin", "env"), by_name((source.get("plugin") or {}).get("env"), given))


def _helm(source: Obj, flags: Flags) -> None:
    if flags.get("values_literal_file"):
        block = {key: value for key, value in (source.get("helm") or {}).items() if key != "values"}
        source["helm"] = block | {"valuesObject": _values(flags["values_literal_file"])}
    given: list[Obj] = []
    for flag, field in (("--helm-set", "helm_set"), ("--parameter", "parameters")):
        given += [{"name": name, "value": value} for name, value in _pairs(flag, flags.get(field))]
    for name, value in _pairs("--helm-set-string", flags.get("helm_set_string")):
        given.append({"name": name, "value": value, "forceString": True})
    if given:
        put(source, ("helm", "parameters"), by_name((source.get("helm") or {}).get("parameters"), given))
    files = [{"name": name, "path": path} for name, path in _pairs("--helm-set-file", flags.get("helm_set_file"))]
    if files:
        put(source, ("helm", "fileParameters"), by_name((source.get("helm") or {}).get("fileParameters"), files))


def _kustomize(source: Obj, flags: Flags) -> None:
    replicas = []
    for name, count in _pairs("--kustomize-replica", flags.get("kustomize_replicas")):
        if not re.fullmatch("[0-9]{1,9}", count):
            raise CommandFailed(
                f"--kustomize-replica {name}={count}: the count is a number, for example {name}=3", USAGE
            )
        replicas.append({"name": name, "count": int(count)})
    if replicas:
        put(source, ("kustomize", "replicas"), by_name((source.get("kustomize") or {}).get("replicas"), replicas))
    for flag, field in _MAPS.items():
        given = dict(_pairs(f"--{flag.replace('kustomize_', 'kustomize-common-').rstrip('s')}", flags.get(flag)))
        if given:
            put(source, ("kustomize", field), {**((source.get("kustomize") or {}).get(field) or {}), **given})


def _jsonnet(source: Obj, flags: Flags) -> None:
    directory = dict(source.get("directory") or {})
    jsonnet = dict(directory.get("jsonnet") or {})
    for flag, (field, code) in _VARIABLES.items():
        given = [{"name": name, "value": value} for name, value in _pairs("--jsonnet-…", flags.get(flag))]
        if given:
            marked = [one | {"code": True} for one in given] if code else given
            jsonnet[field] = by_name(jsonnet.get(field), marked)
    if flags.get("jsonnet_libs"):
        jsonnet["libs"] = list(dict.fromkeys([*(jsonnet.get("libs") or []), *flags["jsonnet_libs"]]))
    if jsonnet != (directory.get("jsonnet") or {}):
        source["directory"] = directory | {"jsonnet": jsonnet}


def by_name(known: list[Obj] | None, given: list[Obj]) -> list[Obj]:
    """Merge by name: given entries replace those of the same name, others are appended. The last one wins."""
    named = {one.get("name"): one for one in known or []}
    return list((named | {one["name"]: one for one in given}).values())


def _values(name: str) -> Obj:
    """Return the values in a file, in the form that Argo CD stores."""
    from syncline.kube.yaml.loading import YamlError, load

    if name.startswith(("http://", "https://")):
        raise CommandFailed(
            f"--values-literal-file {name}: nothing is fetched here; download it and name the file", USAGE
        )
    try:
        found = load(Path(name).read_bytes(), file=name)
    except (OSError, YamlError) as error:
        raise CommandFailed(
            f"--values-literal-file {name}: {getattr(error, 'strerror', None) or error}", USAGE
        ) from error
    if not isinstance(found, dict):
        raise CommandFailed(f"--values-literal-file {name}: holds no mapping of values", USAGE)
    return found


def _pairs(flag: str, given: tuple[str, ...] | None) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for text in given or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise CommandFailed(f"{flag} {text!r}: write NAME=VALUE", USAGE)
        found.append((name, value))
    return found
