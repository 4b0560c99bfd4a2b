"""A pattern in a folder is installed in virtual time, without a host; what cannot be made is named with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.commanding import Shell
from tests.recorded import ROOT

from syncline.assembly.patterns.copies import CopiedReader, Copy
from syncline.kube.objects import Obj
from syncline.patterns.installing.given import spec_given
from syncline.patterns.installing.report import Wait, Waits, held_rows

CATALOGUE = f"redhat-operators={ROOT / 'examples/operators/redhat-operators'}"
START = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = """
global: {singleArgoCD: true, secretStore: {backend: none}}
clusterGroup:
  name: hub
  namespaces: [cert-manager-operator, web]
  subscriptions:
    cert-manager: {name: openshift-cert-manager-operator, namespace: cert-manager-operator}
    strange: {name: of-nowhere, namespace: web}
  argoProjects: [hub]
  applications:
    web: {name: web, namespace: web, argoProject: hub, path: charts/web}
    vault: {name: vault, namespace: web, argoProject: hub, chart: hashicorp-vault, chartVersion: 0.1.*}
    copied: {name: copied, namespace: web, argoProject: hub, chart: own, chartVersion: 1.*}
"""
ABOUT = "apiVersion: v2\nname: own\nversion: 1.2.3\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"


def _written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_a_pattern_is_rehearsed_without_a_host_and_says_what_is_not_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = _written(
        tmp_path / "pattern",
        {
            "values-global.yaml": "global: {pattern: shop}\nmain: {clusterGroupName: hub}\n",
            "values-hub.yaml": GROUP,
            "charts/web/Chart.yaml": ABOUT,
            "charts/web/templates/web.yaml": CONFIG.replace("NAME", "web"),
        },
    )
    chart = _written(tmp_path / "own", {"Chart.yaml": ABOUT, "templates/own.yaml": CONFIG.replace("NAME", "own")})
    said = Shell(capsys, [])(
        "pattern", "rehearse", str(pattern), "--catalog", CATALOGUE, "-o", "json",
        "--copy", f"https://charts.validatedpatterns.io/own={chart}",
        code=3,
    )  # fmt: skip
    found = json.loads(said)
    apps = {one["name"]: one for one in found["applications"]}
    assert [apps[name]["sync"] for name in ("web", "copied", "vault")] == ["Synced", "Synced", "Unknown"]
    missing = "chart hashicorp-vault 0.1.* of https://charts.validatedpatterns.io/ is not read in a rehearsal"
    assert missing in apps["vault"]["why"] and apps["web"]["why"] == ""
    up, strange = found["operators"]
    assert (up["csv"], up["ended"][:10]) == ("cert-manager-operator.v1.16.0", "2026-01-01")
    assert "no operators found in package of-nowhere" in strange["why"]
    assert {one["who"] for one in found["waits"]} >= {"operator of-nowhere"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"repoURL": "https://git.example.com/other.git"}, "https://git.example.com/other.git is not read"),
        ({"repoURL": "https://c.example.com", "chart": "own", "targetRevision": "2.*"}, "the copy is version 1.2.3"),
        ({"repoURL": "https://me:hunter2@git.example.com/x"}, "***@git.example.com/x is not read"),
    ],
)
def test_a_source_without_a_fitting_copy_is_refused_by_name(tmp_path: Path, source: Obj, said: str) -> None:
    copies = {"https://c.example.com/own": Copy(tmp_path, version="1.2.3")}
    found = CopiedReader(tmp_path / "mirrors", copies).read((source,), ("HEAD",), START)
    assert said in found.error and "hunter2" not in found.error


def test_values_give_the_fields_that_the_chart_of_patterns_takes() -> None:
    main = {"clusterGroupName": "hub", "multiSourceConfig": {"enabled": False, "clusterGroupChartVersion": "0.9.*"}}
    found = spec_given({"main": main, "global": {"extraValueFiles": ["/a.yaml"]}})
    sources = {"enabled": False, "clusterGroupChartVersion": "0.9.*"}
    assert found == {"clusterGroupName": "hub", "multiSourceConfig": sources, "extraValueFiles": ["/a.yaml"]}
    assert spec_given({"main": None}) == {}


# -- who waited for what -----------------------------------------------------------------------------------------------


def _app(message: str) -> Obj:
    metadata = {"name": "shop-hub", "namespace": "vp-gitops", "labels": {"validatedpatterns.io/pattern": "shop"}}
    state = {"phase": "Running", "message": message} if message else {"phase": "Succeeded"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata,
        "status": {"operationState": state},
    }


def test_a_wait_lasts_from_the_first_look_that_finds_it_to_the_first_that_does_not() -> None:
    held = "batch/Job/ns/wait holds what comes after wave 5: storage.k8s.io/StorageClass//rbd is not there"
    waits, at = Waits(), [START + timedelta(seconds=each) for each in range(0, 60, 10)]
    for moment, message in zip(at, ("", held, held, "failed. Retrying attempt #1 at 12:00AM.", "", ""), strict=True):
        waits.look("shop", [_app(message)], moment)
    assert waits.made == [
        Wait("sync of shop-hub", held, at[1], at[3]),
        Wait("sync of shop-hub", "failed; it tries again", at[3], at[4]),
    ]
    (row,) = held_rows(waits.made)
    assert (row.what, row.kind, row.began, row.ended) == ("wait for StorageClass rbd", "wait", at[1], at[3])


@pytest.mark.parametrize("count", [1, 2])
def test_attempts_of_one_wait_are_one_wait(count: int) -> None:
    waits = Waits()
    say: Callable[[int], str] = lambda number: f"no. Retrying attempt #{number} at 12:0{number}AM."  # noqa: E731
    for number in range(1, count + 1):
        waits.look("shop", [_app(say(number))], START)
    assert len(waits.made) == 1
