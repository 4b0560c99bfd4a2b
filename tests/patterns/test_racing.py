"""Which operators race is known from the files of what they do, before there is a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commanding import Shell
from tests.patterns.scene import SCENE
from tests.recorded import ROOT, absent

from syncline.kube.objects import Obj, ObjectRef
from syncline.patterns.operators.behaving import read_behaviour
from syncline.patterns.operators.racing.foreseen import Foreseen
from syncline.patterns.operators.racing.pairs import races

CATALOGUE = f"redhat-operators={ROOT / 'examples/operators/redhat-operators'}"
GLOBAL = "global: {pattern: shop, singleArgoCD: true, secretStore: {backend: none}}\n"
CLASS, DEFAULT = "storage.k8s.io", "storageclass.kubernetes.io/is-default-class"


def _operator(package: str, *lines: str, definitions: tuple[str, ...] = ()) -> Foreseen:
    text = f"package: {package}\nsource: x\nlines:\n" + "\n".join(f"- {{source: x, {line}}}" for line in lines)
    ref = ObjectRef("operators.coreos.com", "Subscription", "team", package)
    return Foreseen(package, ref, read_behaviour(text, package), frozenset(definitions))


def _reads(named: str, more: str = "", needs: str = "needs: [it]") -> str:
    look = f"{{name: it, group: {CLASS}, kind: StorageClass, named: [{named}]{more}}}"
    return f"name: choose, looks: [{look}], {needs}, creates: [{_made('v1', 'ConfigMap', 'chosen')}]"


def _made(version: str, kind: str, name: str, more: str = "") -> str:
    return f'{{apiVersion: {version}, kind: {kind}, metadata: {{name: "{name}"{more}}}}}'


def _makes(name: str, more: str = "") -> str:
    return f"name: make, creates: [{_made(f'{CLASS}/v1', 'StorageClass', name, more)}]"


BY_DEFAULT = f', annotations: {{{DEFAULT}: "true"}}'
THERE: list[Obj] = [{"apiVersion": f"{CLASS}/v1", "kind": "StorageClass", "metadata": {"name": "best"}}]


@pytest.mark.parametrize(
    ("reads", "makes", "there", "instead"),
    [
        pytest.param(_reads("best"), _makes("best"), [], None, id="it waits for the one thing that it takes"),
        pytest.param(_reads("best", needs="after: 1s"), _makes("best"), [], ("nothing",), id="it goes on without it"),
        pytest.param(
            _reads("best", BY_DEFAULT), _makes("best"), [],
            (f"a StorageClass of the cluster ({DEFAULT}=true)",), id="it takes another one",
        ),
        pytest.param(_reads("best", BY_DEFAULT), _makes("best"), THERE, None, id="what it prefers is there before"),
        pytest.param(_reads("best", BY_DEFAULT), _makes("other"), [], None, id="what is made is not read"),
        pytest.param(
            _reads("a-best", BY_DEFAULT), _makes("${object}-best"), [],
            (f"a StorageClass of the cluster ({DEFAULT}=true)",), id="the name is that of another object",
        ),
        pytest.param(
            _reads("none", BY_DEFAULT), _makes("own", BY_DEFAULT), [],
            (f"a StorageClass of the cluster ({DEFAULT}=true)",), id="one of two defaults",
        ),
    ],
)  # fmt: skip
def test_a_pair_races_if_the_reader_would_take_something_else_before(
    reads: str, makes: str, there: list[Obj], instead: tuple[str, ...] | None
) -> None:
    found = races([_operator("maker", makes), _operator("reader", reads)], there)
    assert [(one.reader.package, one.maker.package, one.instead) for one in found.races] == (
        [] if instead is None else [("reader", "maker", instead)]
    )


def test_an_operator_does_not_race_with_itself_and_waits_are_listed() -> None:
    found = races([_operator("both", _reads("best", needs="after: 1s"), _makes("best"))])
    assert found.races == () and found.looks == 1
    waits = races([_operator("maker", _makes("best")), _operator("reader", _reads("best"))]).waiting
    assert [(one.reader, one.maker, one.what) for one in waits] == [("reader", "maker", "StorageClass best")]


def test_a_maker_that_waits_for_the_kinds_of_the_reader_is_a_circle() -> None:
    served = "{name: served, group: apiextensions.k8s.io, kind: CustomResourceDefinition, named: [vms.example.com]}"
    maker = _operator("maker", f"looks: [{served}], needs: [served], {_makes('best')}")
    reader = _operator("reader", _reads("best", BY_DEFAULT), definitions=("vms.example.com",))
    first, second = races([maker, reader]).races, races([maker, _operator("reader", _reads("best", BY_DEFAULT))]).races
    assert (first[0].circle, second[0].circle) == ("vms.example.com", "")


@pytest.mark.skipif(not SCENE.exists(), reason=absent(SCENE))
def test_the_scene_of_the_storage_class_is_found_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "values-global.yaml").write_text(GLOBAL)
    said = Shell(capsys, [])
    values = ("-f", str(tmp_path / "values-global.yaml"), "-f", str(SCENE / "values-hub.yaml"))
    (one,) = said.json("pattern", "races", *values, "--catalog", CATALOGUE)["races"]
    assert one["reason"] == (
        "kubevirt-hyperconverged reads StorageClass ocs-storagecluster-ceph-rbd-virtualization once, 1m30s after it is "
        "up (choose the storage of boot images); ocs-operator, which odf-operator brings, makes it 5m0s after there is "
        "a StorageCluster ocs-storagecluster"
    )
    assert one["consequence"] == (
        f"if it reads first, it takes a StorageClass of the cluster ({DEFAULT}=true), and does not look again"
    )
    assert one["ruledOut"] and one["orderings"] == [], "as it is, Jobs hold the second operator"
    text = said("pattern", "races", *values)
    assert "no operators found from catalog redhat-operators" in text and "order: 0" in text


def test_an_operator_that_looks_for_cert_manager_at_its_start_races_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subscriptions = {
        name: {"name": name, "namespace": name}
        for name in ("openshift-cert-manager-operator", "openshift-external-secrets-operator", "opentelemetry-product")
    }
    group = {"name": "hub", "namespaces": list(subscriptions), "subscriptions": subscriptions, "applications": {}}
    (tmp_path / "values.yaml").write_text(GLOBAL + json.dumps({"clusterGroup": group})[1:-1] + "\n")
    values = ("-f", str(tmp_path / "values.yaml"), "--catalog", CATALOGUE)
    found = json.loads(Shell(capsys, [])("pattern", "races", *values, "--no-rehearsal", "-o", "json", code=4))
    pairs = {(one["reader"], one["maker"], one["made"][0]["name"]) for one in found["races"]}
    made = ("openshift-cert-manager-operator", "certificates.cert-manager.io")
    assert pairs == {("openshift-external-secrets-operator", *made), ("opentelemetry-product", *made)}
