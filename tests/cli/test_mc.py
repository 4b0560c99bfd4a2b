"""``syncline mc`` against a served cluster: lists, renders without writing, and says what changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live import START_S, Served, reached, served_cluster
from tests.machineconfig.rendering import files, machine_config, thing

from syncline.cli.main import main
from syncline.kube.client import Request

MCO = "/apis/machineconfiguration.openshift.io/v1"


async def rendered(served: Served, wanted: str) -> None:
    """Until the pool worker is rendered from the MachineConfig ``wanted``."""
    transport = served.cluster.core.transport(judged=False)

    def there() -> bool:
        pool = transport.send(Request("GET", f"{MCO}/machineconfigpools/worker")).or_raise()
        return wanted in json.dumps(pool["spec"].get("configuration", {}))

    await reached(transport, f"{MCO}/machineconfigpools", there)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("mc")) as cluster:

        async def story() -> None:
            await cluster.cluster.start_machine_config("argocd")
            transport = cluster.cluster.core.transport(judged=False)
            for name, text in (("98-motd", "old"), ("99-motd", "new")):
                body = machine_config(name, files(("/etc/motd", text)), kernelArguments=["quiet"])
                transport.send(Request("POST", f"{MCO}/machineconfigs", body=body)).or_raise()
            user = {"name": "core", "passwordHash": "$6$secret", "sshAuthorizedKeys": ["k"]}
            secret = {"ignition": {"version": "3.2.0"}, "passwd": {"users": [user]}}
            transport.send(Request("POST", f"{MCO}/machineconfigs", body=machine_config("97-user", secret))).or_raise()
            await rendered(cluster, "99-motd")

        asyncio.run_coroutine_threadsafe(story(), cluster.loop).result(2 * START_S)
        yield cluster


def syncline(served: Served, *words: str) -> int:
    return main(["mc", *words, "--kubeconfig", str(served.kubeconfig)])


def answer(served: Served, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert syncline(served, *words, "-o", "json") == 0
    return json.loads(capsys.readouterr().out)


def test_configs_are_listed_with_their_pools_and_contents(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "list", "--pool", "worker") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["NAME", "POOLS", "IGNITION", "CONTENTS", "GENERATED", "AGE"]
    motd = next(row for row in rows if row[0] == "99-motd")
    assert motd[1:-1] == ["worker", "3.2.0", "1", "file,", "1", "argument", "no"]
    assert not any(row[0] == "00-master" or row[0].startswith("rendered-") for row in rows)
    rendered_rows = answer(served, capsys, "list", "--rendered", "--pool", "worker")
    assert [row["name"].rsplit("-", 1)[0] for row in rendered_rows] == ["rendered-worker"]
    assert syncline(served, "list", "--pool", "master", "-o", "name") == 0
    assert "machineconfig.machineconfiguration.openshift.io/00-master\n" in capsys.readouterr().out


def test_a_config_is_shown_decoded_and_without_its_password(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "get", "99-motd", "--contents") == 0
    shown = capsys.readouterr().out
    assert "file        /etc/motd" in shown
    assert shown.endswith("--- /etc/motd\nnew\n")
    for words in (
        ["get", "97-user", "--contents"],
        ["get", "97-user", "-o", "yaml"],
        ["render", "worker", "-o", "yaml"],
    ):
        assert syncline(served, *words) == 0
        assert "secret" not in capsys.readouterr().out


def test_a_pool_is_rendered_with_where_each_part_came_from(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "render", "worker") == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.endswith(", which the pool aims at")
    cells = [" ".join(row.split()) for row in rows]
    assert "file /etc/motd 99-motd (over 98-motd)" in cells
    assert "argument quiet 99-motd (and 98-motd)" in cells
    assert "file /etc/kubernetes/kubelet.conf 01-worker-kubelet" in cells


def test_a_render_with_other_files_writes_nothing(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = machine_config("99-motd", files(("/etc/motd", "newer")))
    (tmp_path / "motd.yaml").write_text(json.dumps(changed))
    (tmp_path / "other.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    before = answer(served, capsys, "list", "--rendered")
    assert syncline(served, "render", "worker", "-f", str(tmp_path), "--diff") == 0
    told = capsys.readouterr().out
    assert "~ file /etc/motd: contents\n" in told
    assert "    -new\n    +newer\n" in told
    assert "- argument quiet\n" in told
    assert answer(served, capsys, "list", "--rendered") == before
    names = []
    for words in (["render", "worker"], ["render", "worker", "--without", "99-motd"]):
        assert syncline(served, *words, "-o", "name") == 0
        names.append(capsys.readouterr().out)
    assert names[0] != names[1]


def test_what_cannot_be_rendered_says_why_and_which_file_is_wrong(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(json.dumps(machine_config("99-bad", kernelType="odd")))
    assert syncline(served, "render", "worker", "-f", str(tmp_path / "bad.yaml")) == 1
    assert (
        "MachineConfigPool worker cannot be rendered: MachineConfig 99-bad: kernelType=odd is invalid"
        in capsys.readouterr().err
    )
    (tmp_path / "torn.yaml").write_text('kind: "MachineConfig\n')
    assert syncline(served, "render", "worker", "-f", str(tmp_path / "torn.yaml")) == 2
    assert "torn.yaml:2:1: while scanning a quoted scalar" in capsys.readouterr().err
    (tmp_path / "list.yaml").write_text(json.dumps(machine_config("99-list") | {"spec": [1]}))
    assert syncline(served, "render", "worker", "-f", str(tmp_path / "list.yaml")) == 2
    assert "MachineConfig 99-list: spec is [1], it must be an object" in capsys.readouterr().err
    (tmp_path / "none.yaml").write_text("kind: Namespace\napiVersion: v1\nmetadata: {name: x}\n")
    assert syncline(served, "render", "worker", "-f", str(tmp_path / "none.yaml")) == 2
    assert "there is no MachineConfig in it" in capsys.readouterr().err
    assert syncline(served, "render", "gpu") == 1
    assert "MachineConfigPool gpu does not exist; `syncline pool list` shows those that do" in capsys.readouterr().err


def test_a_butane_document_is_rendered_as_its_machine_config_and_several_are_refused(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = "{machineconfiguration.openshift.io/role: worker}"
    text = f"variant: openshift\nversion: 4.16.0\nmetadata: {{name: 99-bu, labels: {labels}}}\nstorage:\n"
    text += "  files: [{path: /etc/bu, contents: {inline: x}}]\n"
    (tmp_path / "one.bu").write_text(text)
    assert syncline(served, "render", "worker", "-f", str(tmp_path / "one.bu")) == 0
    assert ["file", "/etc/bu", "99-bu"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    (tmp_path / "two.bu").write_text(f"{text}---\n{text}")
    for command in (("render", "worker"), ("impact",)):
        assert syncline(served, *command, "-f", str(tmp_path / "two.bu")) == 2
        assert "two.bu: 2 documents; Butane is one document, give each a file" in capsys.readouterr().err


def test_files_in_which_nothing_is_are_told(served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.yaml").write_text("# to be written\n")
    assert syncline(served, "impact", "-f", str(tmp_path / "empty.yaml")) == 2
    assert "there is nothing in it that concerns machines" in capsys.readouterr().err


def test_names_alone_are_printed_as_kubectl_takes_them(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--kubeconfig", str(served.kubeconfig))
    assert main(["pool", "list", "-o", "name", *at]) == 0
    pools = ["machineconfigpool.machineconfiguration.openshift.io/" + name for name in ("master", "worker")]
    assert set(capsys.readouterr().out.splitlines()) >= set(pools)
    assert main(["node", "list", "-o", "name", *at]) == 0
    assert all(line.startswith("node/") for line in capsys.readouterr().out.splitlines())
    assert syncline(served, "list", "-o", "name") == 0
    assert "machineconfig.machineconfiguration.openshift.io/99-motd" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("pool", "worker"), None, "MachineConfigPool worker "),
        (("pool/wroker",), 1, "MachineConfigPool wroker does not exist; there is worker, …"),
        (("pool",), 1, "Application argocd/pool does not exist; to have a pool explained write pool/NAME"),
        (("pool", "worker", "master"), 2, "'pool worker master': explain tells of one object; write KIND/NAME"),
    ],
)
def test_what_is_to_be_explained_may_be_two_words_and_a_slip_is_told(
    words: tuple[str, ...], code: int | None, told: str, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = main(["explain", *words, "--kubeconfig", str(served.kubeconfig)])
    said = capsys.readouterr()
    if code is None:
        assert said.out.startswith(told)
    else:
        assert (ended, said.err) == (code, f"error: {told}\n")


def test_a_deletion_takes_the_words_of_our_own_commands(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "impact", "--delete", "pool/gpu") == 2
    assert "--delete pool/gpu: there is no such MachineConfigPool" in capsys.readouterr().err


def test_two_configs_are_compared_in_words(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "diff", "98-motd", "99-motd", "--contents", "--exit-code") == 2
    assert capsys.readouterr().out == (
        "98-motd → 99-motd\n~ file /etc/motd: contents\n"
        "    --- before\n    +++ after\n    @@ -1 +1 @@\n    -old\n    +new\n"
    )
    assert syncline(served, "diff", "98-motd", "98-motd", "--exit-code") == 0
    assert capsys.readouterr().out.endswith("nothing changes\n")
    told = answer(served, capsys, "diff", "98-motd", "97-user")["changes"]
    assert {"kind": "file", "name": "/etc/motd", "verb": "removed", "what": ""} in told
    assert {"kind": "user", "name": "core", "verb": "added", "what": ""} in told


def test_a_pool_is_compared_with_what_its_machines_have(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """The controllers leave a pool alone that selects everything."""
    transport = served.cluster.core.transport(judged=False)
    spec = {"machineConfigSelector": {}, "nodeSelector": {}, "configuration": {"name": "99-motd"}}
    pool = thing("MachineConfigPool", "frozen", spec)
    transport.send(Request("POST", f"{MCO}/machineconfigpools", body=pool)).or_raise()
    body = {"status": {"configuration": {"name": "98-motd"}}}
    headers = {"content-type": "application/merge-patch+json"}
    transport.send(Request("PATCH", f"{MCO}/machineconfigpools/frozen/status", {}, headers, body)).or_raise()
    found = answer(served, capsys, "diff", "frozen")
    assert (found["from"], found["to"]) == ("98-motd", "99-motd")
    assert found["changes"] == [{"kind": "file", "name": "/etc/motd", "verb": "changed", "what": "contents"}]


def test_files_are_rendered_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, role in (("99-a", "worker"), ("00-b", "infra"), ("99-m", "master")):
        config = machine_config(name, files((f"/etc/{name}", "x")), role=role)
        (tmp_path / f"{name}.yaml").write_text(json.dumps(config))
    assert main(["mc", "render", "infra", "-f", str(tmp_path), "--offline"]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("rendered-infra-") and head.endswith(", from these files alone")
    assert [" ".join(row.split()) for row in rows[1:]] == ["file /etc/99-a 99-a", "file /etc/00-b 00-b"]
    chosen = {"matchLabels": {"machineconfiguration.openshift.io/role": "infra"}}
    (tmp_path / "pool.yaml").write_text(
        json.dumps(thing("MachineConfigPool", "infra", {"machineConfigSelector": chosen}))
    )
    assert main(["mc", "render", "infra", "-f", str(tmp_path), "--offline"]) == 0
    assert "/etc/99-a" not in capsys.readouterr().out
    (tmp_path / "99-bad.yaml").write_text(
        json.dumps(machine_config("99-bad", {"ignition": {"version": "9.0.0"}}, role="infra"))
    )
    assert main(["mc", "render", "infra", "-f", str(tmp_path), "--offline"]) == 1
    assert "Supported spec versions" in capsys.readouterr().err
    assert main(["mc", "render", "infra", "--offline"]) == 2


FOLDER = {
    "base/kustomization.yaml": "resources: [motd.yaml]\n",
    "base/motd.yaml": json.dumps(machine_config("98-motd", files(("/etc/motd", "base")))),
    "prod/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\n"
        "patches:\n- path: patch.yaml\n  target: {kind: MachineConfig}\n"
    ),
    "prod/patch.yaml": "- {op: add, path: /spec/kernelArguments, value: [audit=1]}\n",
    "values.yaml": "replicas: 2\n",
}


def test_a_folder_with_a_kustomization_is_what_that_builds_and_strangers_beside_manifests_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    words = ["mc", "render", "worker", "--offline", "-o", "json", "-f"]
    assert main([*words, str(tmp_path / "prod")]) == 0
    made = json.loads(capsys.readouterr().out)["spec"]
    assert made["kernelArguments"] == ["audit=1"]
    assert [one["path"] for one in made["config"]["storage"]["files"]] == ["/etc/motd"]
    assert main([*words, str(tmp_path)]) == 0, "no kustomization of its own: every file below it"
    assert json.loads(capsys.readouterr().out)["spec"]["kernelArguments"] == []
    assert main([*words, str(tmp_path / "values.yaml")]) == 2, "a file by its name has to be one"
    assert "without apiVersion and kind" in capsys.readouterr().err
    (tmp_path / "base/kustomization.yaml").write_text("resources: [gone.yaml]\n")
    assert main([*words, str(tmp_path / "prod")]) == 2
    assert "its kustomization cannot be built: " in capsys.readouterr().err
