"""``syncline pattern plan``, the secrets file, and the timeline: without a cluster."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cli.commanding import Shell
from tests.live import served_cluster

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import format_time, parse_time
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.pattern.plan import plan_group, waves_of
from syncline.cli.pattern.secretfile import secrets_of
from syncline.cli.views.patterntimeline import describe_rows, drawn_rows
from syncline.clustergroup.render import render, values_of
from syncline.control.executor import run_in_place
from syncline.kube.kinds.argoproj import crds
from syncline.kube.kinds.validatedpatterns import argo_cd_crd, pattern_crd
from syncline.kube.objects import Obj
from syncline.patterns.installing.timeline import rows_of

VALUES = """
global: {pattern: shop, singleArgoCD: true, secretStore: {backend: none}}
clusterGroup:
  name: hub
  namespaces: [one]
  applications: {}
  subscriptions:
    first:
      name: first
      annotations: {argocd.argoproj.io/sync-wave: "5"}
      sequenceJob: {resourceType: sc, resourceName: rbd}
    second: {name: second, annotations: {argocd.argoproj.io/sync-wave: "10"}}
"""
NAMESPACE: Obj = {"apiVersion": "v1", "kind": "Namespace"}
START = parse_time("2026-01-01T00:00:00Z")


def at(seconds: int) -> str:
    return format_time(START + timedelta(seconds=seconds))


def test_the_plan_prints_waves_and_what_holds_them(tmp_path: Path) -> None:
    file = tmp_path / "values-hub.yaml"
    file.write_text(VALUES)
    done = CliRunner().invoke(plan_group, ["-f", str(file)])
    assert done.exit_code == 0, done.output
    assert "Job first-sequencejob ends: it looks for sc rbd in a loop without an end" in done.output
    assert "gate csv-succeeded: operator first works" in done.output
    assert "operator second works" not in done.output, "nothing comes after the last wave"


@pytest.mark.parametrize("by", ["application", "subscription"])
def test_a_wait_is_planned_in_place_of_the_job(by: str) -> None:
    from syncline.kube.yaml.loading import load

    values: Any = load(VALUES)
    if by == "subscription":
        values["clusterGroup"]["subscriptions"]["first"]["annotations"]["syncline.dev/sequence-job"] = "wait"
    waves = waves_of(render(values_of([values])), asked="wait" if by == "application" else "")
    (wave,) = [one for one in waves if one["wave"] == 5]
    assert wave["objects"] == ["Subscription first"]
    assert "a wait without a pod: sc rbd is there, at most an hour (first-sequencejob)" in wave["after"]


# -- the secrets file --------------------------------------------------------------------------------------------------


def _decoded(secret: Obj) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_a_file_of_version_two_gives_secrets_in_their_namespaces(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file")
    (tmp_path / "aws").write_text("[default]\nid = from an ini file\n")
    file = tmp_path / "values-secret.yaml"
    file.write_text(
        'version: "2.0"\nbackingStore: kubernetes\nsecrets:\n'
        "- name: demo\n  targetNamespaces: [a, b]\n  labels: {x: one}\n  fields:\n"
        "  - {name: v, value: given}\n  - {name: p, path: key}\n  - {name: i, ini_file: aws, ini_key: id}\n"
    )
    first, second = secrets_of(file)
    assert (first["metadata"]["namespace"], second["metadata"]["namespace"]) == ("a", "b")
    assert first["metadata"]["labels"] == {"x": "one"}
    assert _decoded(first) == {"v": "given", "p": "from a file", "i": "from an ini file"}


def test_a_file_of_version_one_gives_secrets_in_one_namespace(tmp_path: Path) -> None:
    file = tmp_path / "values-secret.yaml"
    file.write_text("secrets:\n  demo: {user: ann}\n")
    (made,) = secrets_of(file)
    assert (made["metadata"]["namespace"], _decoded(made)) == ("validated-patterns-secrets", {"user": "ann"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('version: "2.0"\nsecrets: []\n', "backingStore: vault is not served; allowed is kubernetes"),
        ('version: "3"\n', "version: found '3'; allowed are 1.0 and 2.0"),
        (
            'version: "2.0"\nbackingStore: kubernetes\nsecrets:\n- name: a\n  fields:\n  - {name: p}\n',
            "a.p: give one of value, path, ini_file",
        ),
        (
            'version: "2.0"\nbackingStore: kubernetes\nsecrets:\n- name: a\n  fields:\n'
            "  - {name: p, onMissingValue: generate, value: hunter2}\n",
            "values are generated in vault alone",
        ),
        ("- hunter2\n", "must be a mapping with secrets"),
        ("secrets: {a: [hunter2\n", "not readable YAML"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_its_values(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "values-secret.yaml"
    file.write_text(text)
    with pytest.raises(CommandFailed) as error:
        secrets_of(file)
    assert said in str(error.value) and "hunter2" not in str(error.value)


# -- the timeline ------------------------------------------------------------------------------------------------------


def test_a_timeline_shows_who_began_when_and_what_goes_on() -> None:
    tracked = {"argocd.argoproj.io/tracking-id": "shop-hub:x", "argocd.argoproj.io/sync-wave": "5"}
    pattern = {"metadata": {"name": "shop", "creationTimestamp": at(0)}, "status": {"lastStep": "reconcile complete"}}

    def made(api: str, kind: str, name: str, seconds: int, status: Obj | None = None, **metadata: Any) -> Obj:
        full = {"name": name, "namespace": "ns", "creationTimestamp": at(seconds), **metadata}
        return {"apiVersion": api, "kind": kind, "metadata": full, "status": status or {}}

    olm, label = "operators.coreos.com/v1alpha1", {"validatedpatterns.io/pattern": "shop"}
    running = {"operationState": {"startedAt": at(10)}}
    done = {"phase": "Succeeded", "lastTransitionTime": at(40)}
    objects = [
        made("argoproj.io/v1alpha1", "Application", "shop-hub", 10, running, labels=label),
        made(olm, "Subscription", "odf", 10, {"installedCSV": "odf.v1"}, annotations=tracked),
        made(olm, "ClusterServiceVersion", "odf.v1", 10, done),
        made("storage.k8s.io/v1", "StorageClass", "rbd", 60),
        made("storage.k8s.io/v1", "StorageClass", "old", -60),
    ]
    now = START + timedelta(seconds=100)
    rows = rows_of(pattern, objects, now)
    assert [(row.what, row.state, row.ended is None) for row in rows] == [
        ("Pattern shop", "reconcile complete", True),
        ("operator odf", "Succeeded", False),
        ("sync of shop-hub", "Unknown, Unknown", True),
        ("storage class rbd", "made", False),
    ]
    lines = describe_rows(rows, now).splitlines()
    assert lines[1].endswith("›") and lines[2].count("█") == 15 and lines[4].endswith("│")
    picture = drawn_rows(rows, now, "shop <now>")
    assert picture.count("<title>") == 3 and picture.count("<polygon") == 1 and "shop &lt;now&gt;" in picture


# -- on a served cluster -----------------------------------------------------------------------------------------------


def test_a_pattern_is_installed_listed_shown_explained_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_cluster(tmp_path, ClusterSettings(nodes=0)) as served:
        made = [pattern_crd(), argo_cd_crd(), *crds(), {"metadata": {"name": "openshift-operators"}} | NAMESPACE]
        run_in_place(ensure_objects(made), served.cluster.core.transport())
        monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
        shell = Shell(capsys, [])
        values = tmp_path / "values-hub.yaml"
        values.write_text(VALUES)
        secrets = tmp_path / "values-secret.yaml"
        secrets.write_text("secrets:\n  demo: {user: hunter2}\n")
        done = shell(
            "pattern", "install", "-f", str(values), "--repo", "https://git.example.com/shop.git", "--revision", "main",
            "--secrets", str(secrets), "--set", "a=b", "--token-secret", "team/git",
        )  # fmt: skip
        assert "secret validated-patterns-secrets/demo: 1 fields" in done and "hunter2" not in done
        assert "shop" in shell("pattern", "list")
        shown = shell("pattern", "get", "shop", "-o", "yaml")
        assert "clusterGroupName: hub" in shown and "tokenSecretNamespace: team" in shown
        assert "Repository:  https://git.example.com/shop.git@main" in shell("pattern", "get", "shop")
        assert "Pattern shop" in shell("pattern", "get", "shop", "--timeline")
        assert "Pattern openshift-operators/shop Installed" in shell("pattern", "explain", "shop")
        assert "there is no Pattern openshift-operators/other" in shell("pattern", "get", "other", code=1)
        assert "too long together" in shell("pattern", "install", "x" * 40, "--repo", "r", "--group", "hubs", code=1)
        assert "--group is missing" in shell("pattern", "install", "x", "--repo", "r", code=2)
        assert "what it installed stays" in shell("pattern", "uninstall", "shop")
        assert "shop" not in shell("pattern", "list", "-o", "name")
