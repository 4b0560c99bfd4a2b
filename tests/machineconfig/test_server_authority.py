"""Authorities inside kubeconfigs rotate past rendered configs (reference machine-config 4.9): what is written, whether
the kubelet is restarted, and that a death in between loses no restart."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.machineconfig.memory_host import MemoryHost
from tests.machineconfig.room import APIS, PoolWorld
from tests.machineconfig.test_machines_updated import host, reason, state, world

from syncline.cluster.machines.machine import Entry
from syncline.kube.objects import Obj, annotations_of
from syncline.kube.yaml.loading import dump, load
from syncline.machineconfig.agent.files.authorities import write_server_authority
from syncline.machineconfig.agent.files.serverauthority import (
    KUBECONFIG,
    KUBELETS_KUBECONFIG,
    ROTATE,
    ROTATED,
    ServerAuthorityError,
    bundle_of,
    rotation,
)
from syncline.machineconfig.agent.files.writing import UpdateError

CONTROLLER = f"{APIS}/controllerconfigs/machine-config-controller"
NAMESPACE = "openshift-machine-config-operator"
FROM = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def certificate(name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(FROM)
        .not_valid_after(FROM + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def kubeconfig(*trusted: str, **more: Any) -> bytes:
    data = base64.b64encode(b"".join(map(certificate, trusted))).decode()
    cluster = {"server": "https://api:6443", "certificate-authority-data": data}
    users = [{"name": "k", "user": {"token": "secret"}}]
    return dump({"clusters": [{"name": "c", "cluster": cluster}], "users": users, **more}).encode()


def trusted(content: bytes) -> bytes:
    [cluster] = load(content)["clusters"]
    return base64.b64decode(cluster["cluster"]["certificate-authority-data"])


def bundle(*names: str) -> bytes:
    return b"".join(map(certificate, names))


@pytest.mark.parametrize(
    ("there", "told", "then", "restart"),
    [
        (["old"], ["old"], None, False),
        (["old", "older"], ["old"], None, False),
        (["old"], ["old", "new"], ["old", "new"], True),
        (["old", "older"], ["old", "new"], ["old", "new"], True),
        (["old"], ["old", "kube-apiserver-lb-signer@1"], ["old", "kube-apiserver-lb-signer@1"], False),
        (["old"], ["kube-apiserver-localhost-signer", "new"], ["kube-apiserver-localhost-signer", "new"], True),
        ([], ["new"], ["new"], True),
    ],
    ids=["the same", "fewer", "one more", "one for another", "a signer that no kubelet meets", "both", "the first"],
)
def test_what_a_kubeconfig_trusts_after_a_rotation(
    there: list[str], told: list[str], then: list[str] | None, restart: bool
) -> None:
    found = rotation(kubeconfig(*there), bundle(*told))
    assert (found and trusted(found.kubeconfig)) == (None if then is None else bundle(*then))
    assert found is None or found.restart == restart
    assert found is None or load(found.kubeconfig)["users"] == load(kubeconfig())["users"], "the rest stays"


def test_what_is_no_certificate_is_left_out_and_alone_changes_nothing() -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"
    found = rotation(kubeconfig("old"), broken + bundle("new"))
    assert found is not None and trusted(found.kubeconfig) == bundle("new")
    assert rotation(kubeconfig("old"), broken) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "it is no YAML"),
        (b"[]", "clusters[0].cluster is missing"),
        (b"clusters: [1]", "clusters[0].cluster is missing"),
        (b"clusters: [{cluster: {certificate-authority-data: '1'}}]", "certificate-authority-data is no base64"),
        (b"#" * (2 << 20), "2097152 bytes"),
    ],
)
def test_a_kubeconfig_that_is_none_is_told_and_not_touched(content: bytes, why: str) -> None:
    with pytest.raises(ServerAuthorityError) as caught:
        rotation(content, bundle("new"))
    assert str(caught.value).startswith(f"{KUBECONFIG}: ") and why in str(caught.value)


@pytest.mark.parametrize(
    "config_map",
    [
        {"data": {"ca-bundle.crt": certificate("new").decode()}},
        {"data": {"ca-bundle.crt": base64.b64encode(certificate("new")).decode()}},
        {"binaryData": {"ca-bundle.crt": base64.b64encode(certificate("new")).decode()}},
    ],
    ids=["text", "base64", "binary"],
)
def test_a_bundle_is_read_however_it_was_put_there(config_map: Mapping[str, Any]) -> None:
    assert bundle_of(config_map) == certificate("new")


def test_a_bundle_that_is_not_there_is_empty() -> None:
    assert bundle_of({}) == b"" == bundle_of({"data": {"other": "x"}})


def machine(**failing: Any) -> MemoryHost:
    made = MemoryHost(**failing)
    for path in (KUBECONFIG, KUBELETS_KUBECONFIG):
        made.write(path, kubeconfig("old", contexts=[path]), mode=0o600)
    return made


def test_the_kubelet_learns_it_first_and_is_restarted() -> None:
    edge = machine()
    write_server_authority(edge, bundle("old", "new"))
    assert edge.commands == ["systemctl daemon-reload", "systemctl restart kubelet.service"]
    for path in (KUBECONFIG, KUBELETS_KUBECONFIG):
        assert trusted(edge.read(path)) == bundle("old", "new") and load(edge.read(path))["contexts"] == [path]
        assert edge.tree[path].stat.mode == 0o600
    edge.commands.clear()
    write_server_authority(edge, bundle("old", "new"))
    assert edge.commands == []


def test_a_restart_that_failed_is_tried_again() -> None:
    edge = machine(failing=("systemctl restart",))
    with pytest.raises(UpdateError):
        write_server_authority(edge, bundle("new"))
    assert trusted(edge.read(KUBECONFIG)) == bundle("old"), "the rotation is not done"
    edge.failing = ()
    edge.commands.clear()
    write_server_authority(edge, bundle("new"))
    assert edge.commands[-1] == "systemctl restart kubelet.service" and trusted(edge.read(KUBECONFIG)) == bundle("new")


def test_a_machine_without_a_kubeconfig_has_nothing_to_rotate() -> None:
    edge = MemoryHost()
    write_server_authority(edge, bundle("new"))
    assert edge.commands == [] and not edge.exists(KUBECONFIG)


# -- on a cluster -----------------------------------------------------------------------------------------------------


def published(one: PoolWorld, *names: str) -> None:
    one.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    body: Obj = {"metadata": {"name": "kubeconfig-data"}, "data": {"ca-bundle.crt": bundle(*names).decode()}}
    one.send("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)


def rotate(one: PoolWorld, flag: str) -> None:
    one.merge(CONTROLLER, {"metadata": {"annotations": {ROTATE: flag}}})
    one.driver.advance(60)


def test_071_a_rotated_authority_reaches_a_node_without_a_drain_or_a_reboot() -> None:
    one = world(1)
    root, reboots = host(one).machine.root, one.reboots()
    root.write(KUBECONFIG, Entry(content=kubeconfig("old"), mode=0o600))
    published(one, "old", "new")
    one.driver.advance(60)
    assert trusted(host(one).read(KUBECONFIG)) == bundle("old"), "they do not rotate yet"
    rotate(one, "true")
    assert trusted(host(one).read(KUBECONFIG)) == bundle("old", "new")
    assert annotations_of(one.nodes()["worker-0"])[ROTATED] == "true"
    assert one.reboots() == reboots and not one.events("Drain") and state(one) == "Done"
    rotate(one, "false")
    assert annotations_of(one.nodes()["worker-0"])[ROTATED] == "false", "so that the next rotation is one"


def test_a_bundle_that_comes_late_is_taken_and_a_broken_kubeconfig_is_told() -> None:
    one = world(1)
    root = host(one).machine.root
    root.write(KUBECONFIG, Entry(content=b"clusters: []"))
    rotate(one, "true")
    assert ROTATED not in annotations_of(one.nodes()["worker-0"]) and state(one) == "Done"
    published(one, "new")
    rotate(one, "true ")
    rotate(one, "true")
    assert state(one) == "Degraded" and "clusters[0].cluster is missing; restore it" in reason(one)
    root.write(KUBECONFIG, Entry(content=kubeconfig("old"), mode=0o600))
    one.driver.until(lambda: state(one) == "Done", limit_s=600)
    assert trusted(host(one).read(KUBECONFIG)) == bundle("new")
