"""Renders one chart with Helm, in a render worker: :func:`render`.

From a folder with a chart, values and options it returns named template texts: definitions first, then templates by
name including hooks, without notes. Every render loads the chart again, since rendering changes it.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.chart_check import check_chart
from syncline.sources.revision import Version, parse_constraint

APPLICATION = ("", "application")
"""Types of charts that can be installed."""


def render(payload: dict[str, Any]) -> list[tuple[str, str]]:
    """Render in process. Raises :class:`SourceError` in Helm's words."""
    import helm_python
    from helm_python import _native  # the options for versions are in the native call only

    check_chart(payload["chart"])
    try:
        with helm_python.Chart.load(payload["chart"]) as chart:
            _check(chart.metadata, {str(one.get("name")) for one in chart.dependencies}, payload["kube_version"])
            # Read before rendering, which empties it where a subchart is disabled.
            crds = [] if payload["skip_crds"] else chart.crds
            options: dict[str, Any] = {"name": payload["name"], "namespace": payload["namespace"]}
            if payload["kube_version"]:
                options["kube_version"] = payload["kube_version"]
            if payload["api_versions"]:
                options["api_versions"] = payload["api_versions"]
            text = _native.call_string("helm_render", chart._raw(), payload["values"], json.dumps(options))
    except helm_python.HelmError as error:
        raise SourceError(Problem.INVALID, _one_line(str(error))) from None
    templates: dict[str, str] = json.loads(text)
    found = [(str(crd["filename"]), str(crd["data"])) for crd in crds]
    return found + [(name, templates[name]) for name in sorted(templates) if _is_manifest(name, templates[name])]


def _is_manifest(name: str, text: str) -> bool:
    return not name.endswith("NOTES.txt") and bool(text.strip())


def _check(metadata: dict[str, Any], loaded: set[str], kube_version: str) -> None:
    if metadata.get("type", "") not in APPLICATION:
        raise SourceError(Problem.INVALID, f"{metadata['type']} charts are not installable")
    declared = metadata.get("dependencies") or ()
    missing = [one for one in declared if one.get("name") not in loaded]
    if missing:
        names = ", ".join(str(one.get("name")) for one in missing)
        places = ", ".join(dict.fromkeys(str(one.get("repository") or "no repository") for one in missing))
        raise SourceError(
            Problem.UNSUPPORTED,
            f"found in Chart.yaml, but missing in charts/ directory: {names} (from {places}, which is not asked)",
            fix="run helm dependency update and commit charts/",
        )
    wanted = str(metadata.get("kubeVersion") or "")
    constraint = parse_constraint(wanted) if wanted and kube_version else None
    version = Version.parse(kube_version)
    if constraint is not None and version is not None and not constraint(version):
        message = f"chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {kube_version}"
        raise SourceError(Problem.INVALID, message)


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def render_with_binary(payload: dict[str, Any]) -> list[tuple[str, str]]:
    """Render with the ``helm`` program on PATH. Raises :class:`SourceError` in its words."""
    check_chart(payload["chart"])
    scratch = payload["scratch"]
    command = ["helm", "template", "--namespace", payload["namespace"]]
    command += ["--values", "-", "--skip-crds" if payload["skip_crds"] else "--include-crds"]
    command += ["--kube-version", payload["kube_version"]] if payload["kube_version"] else []
    for version in payload["api_versions"]:
        command += ["--api-versions", version]
    command += ["--", payload["name"], payload["chart"]]  # a name is never an option
    home = os.path.join(scratch, "home")
    names = ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
    answer = subprocess.run(
        command,
        input=payload["values"].encode(),  # they may hold passwords, and a file could outlive us
        capture_output=True,
        env={**os.environ, **dict.fromkeys(names, home)},
        check=False,
        cwd=scratch,
    )
    if answer.returncode != 0:
        complaint = _one_line(answer.stderr.decode("utf-8", "replace")).removeprefix("Error: ")
        raise SourceError(Problem.INVALID, complaint or f"helm ended with code {answer.returncode}")
    return [("", answer.stdout.decode("utf-8", "replace"))]
