"""Rendering on the embedded cluster, in virtual time. Numbers are those of the reference's behaviours (section 8)."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest
from tests.cluster.world import World
from tests.machineconfig.rendering import (
    MCO,
    ROLE,
    Room,
    controller_config,
    controllers,
    files,
    machine_config,
    pool,
    thing,
)
from tests.recorded import SCENES, absent

from syncline.kube.client import Request, Response
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.machineconfiguration import machine_config_crds
from syncline.kube.kinds.openshiftconfig import openshift_config_crds
from syncline.kube.objects import Obj, name_of
from syncline.kube.yaml.loading import load
from syncline.machineconfig.render.naming import rendered_name
from syncline.machineconfig.render.plan import MAX_BYTES


def source(file: Obj) -> str:
    return str(file["contents"]["source"])


def ignition(version: str = "3.2.0", **sections: Any) -> Obj:
    return {"ignition": {"version": version}} | sections


def says(room: Room, pool_name: str = "worker") -> str:
    condition = room.condition("RenderDegraded", pool_name)
    assert condition["status"] == "True"
    return str(condition["message"])


def test_001_the_name_that_sorts_last_supplies_the_contents_of_a_file() -> None:
    room = Room()
    room.config("99-b", files(("/etc/x", "b")))
    room.config("99-a", files(("/etc/x", "a")))
    room.rest()
    assert source(room.files()["/etc/x"]) == "data:,b"


def test_002_the_configs_of_a_custom_pool_win_over_those_of_workers() -> None:
    room = Room()
    room.add("machineconfigpools", pool("infra", "worker", "infra"))
    room.config("99-worker-a", files(("/etc/x", "worker")))
    room.config("00-infra-a", files(("/etc/x", "infra")), role="infra")
    room.rest()
    assert source(room.files("infra")["/etc/x"]) == "data:,infra"
    assert source(room.files("worker")["/etc/x"]) == "data:,worker"
    sources = [one["name"] for one in room.pool("infra")["spec"]["configuration"]["source"]]
    assert sources[-1] == "00-infra-a"


def test_003_names_compare_as_text() -> None:
    room = Room()
    room.config("100-x", files(("/etc/x", "hundred")))
    room.config("99-x", files(("/etc/x", "ninety-nine")))
    room.rest()
    assert source(room.files()["/etc/x"]) == "data:,ninety-nine"


def test_004_a_later_file_without_a_mode_keeps_the_earlier_mode() -> None:
    room = Room()
    room.config("10-a", files({"path": "/etc/x", "mode": 0o600, "contents": {"source": "data:,a"}}))
    room.config("20-b", files({"path": "/etc/x", "contents": {"source": "data:,b"}}))
    room.rest()
    assert room.files()["/etc/x"]["mode"] == 0o600
    assert source(room.files()["/etc/x"]) == "data:,b"


def test_005_the_compression_is_that_of_the_later_contents() -> None:
    room = Room()
    packed = base64.b64encode(gzip.compress(b"a")).decode()
    first = {"source": f"data:;base64,{packed}", "compression": "gzip"}
    room.config("10-a", files({"path": "/etc/x", "contents": first}))
    room.config("20-b", files({"path": "/etc/x", "contents": {"source": "data:,b"}}))
    room.rest()
    assert room.files()["/etc/x"]["contents"] == {"source": "data:,b"}


def test_006_dropins_of_different_configs_are_all_there() -> None:
    room = Room()
    for name in ("10-a", "20-b"):
        dropin = {"name": f"{name}.conf", "contents": "[Service]\n"}
        room.config(name, ignition(systemd={"units": [{"name": "x.service", "dropins": [dropin]}]}))
    room.rest()
    units = {one["name"]: one for one in room.rendered()["spec"]["config"]["systemd"]["units"]}
    assert [one["name"] for one in units["x.service"]["dropins"]] == ["10-a.conf", "20-b.conf"]


def test_007_keys_of_core_are_joined_without_repetition() -> None:
    room = Room()
    for name, keys in (("10-a", ["k1", "k2"]), ("20-b", ["k2", "k3"])):
        room.config(name, ignition(passwd={"users": [{"name": "core", "sshAuthorizedKeys": keys}]}))
    room.rest()
    assert room.rendered()["spec"]["config"]["passwd"]["users"][0]["sshAuthorizedKeys"] == ["k1", "k2", "k3"]


def test_008_kernel_arguments_are_concatenated_with_their_repetitions() -> None:
    room = Room()
    room.config("20-b", kernelArguments=["quiet", "b"])
    room.config("10-a", kernelArguments=["quiet", "a"])
    room.rest()
    assert room.rendered()["spec"]["kernelArguments"] == ["quiet", "a", "quiet", "b"]


def test_009_a_default_kernel_cannot_undo_another() -> None:
    room = Room()
    room.config("10-a", kernelType="realtime")
    room.config("20-b", kernelType="default")
    room.rest()
    assert room.rendered()["spec"]["kernelType"] == "realtime"


def test_010_fips_is_refused_on_a_pool_that_runs_without() -> None:
    room = Room()
    before = room.target()
    room.config("99-fips", fips=True)
    room.rest()
    assert "detected change to FIPS flag; refusing to modify FIPS on a running cluster" in says(room)
    assert room.target() == before


def test_011_a_config_that_comes_and_goes_returns_the_pool_to_its_old_name() -> None:
    room = Room()
    first = room.target()
    room.config("99-a", files(("/etc/a", "x")))
    room.rest()
    second = room.target()
    assert second != first
    names = room.names()
    room.delete(f"{MCO}/machineconfigs/99-a")
    room.rest()
    assert room.target() == first
    assert room.names() == [name for name in names if name != "99-a"]


def test_012_labels_and_annotations_of_a_config_change_nothing() -> None:
    room = Room()
    room.config("99-a", files(("/etc/a", "x")))
    room.rest()
    before = room.target(), room.names()
    notes = {"annotations": {"argocd.argoproj.io/tracking-id": "x"}, "labels": {"team": "a"}}
    room.merge(f"{MCO}/machineconfigs/99-a", {"metadata": notes})
    room.rest()
    assert (room.target(), room.names()) == before


def test_013_a_rendered_config_that_is_edited_by_hand_is_put_back() -> None:
    room = Room()
    name, before = room.target(), room.rendered()["spec"]
    room.merge(f"{MCO}/machineconfigs/{name}", {"spec": {"kernelArguments": ["evil"], "config": {"x": 1}}})
    room.rest()
    assert room.rendered()["spec"] == before
    assert rendered_name("worker", room.rendered()["spec"]) == name


def test_013_a_rendered_config_that_is_deleted_while_it_is_the_target_is_made_again() -> None:
    room = Room()
    name, before = room.target(), room.rendered()["spec"]
    room.delete(f"{MCO}/machineconfigs/{name}")
    room.rest()
    assert room.rendered()["spec"] == before


def test_014_a_file_of_spec_2_2_is_rendered_with_its_path_and_mode() -> None:
    room = Room()
    contents = {"source": "data:,x", "verification": {}}
    file = {"path": "/usr/local/bin/x", "filesystem": "root", "mode": 0o755, "contents": contents}
    room.config("99-old", ignition("2.2.0", storage={"files": [file]}, networkd={}, passwd={}, systemd={}))
    room.rest()
    assert room.rendered()["spec"]["config"]["ignition"]["version"] == "3.5.0"
    assert room.files()["/usr/local/bin/x"]["mode"] == 0o755
    assert "verification" not in room.files()["/usr/local/bin/x"]["contents"]


def test_015_of_two_entries_for_one_path_in_spec_2_2_the_second_counts() -> None:
    room = Room()
    entries = [
        {"path": "/etc/x", "filesystem": "root", "contents": {"source": f"data:,{text}", "verification": {}}}
        for text in ("first", "second")
    ]
    room.config("99-old", ignition("2.2.0", storage={"files": entries}))
    room.rest()
    assert source(room.files()["/etc/x"]) == "data:,second"


def test_016_a_file_of_spec_2_2_without_a_filesystem_is_refused() -> None:
    room = Room()
    before = room.target()
    file = {"path": "/etc/x", "contents": {"source": "data:,x", "verification": {}}}
    room.config("99-old", ignition("2.2.0", storage={"files": [file]}))
    room.rest()
    assert "no filesystem specified" in says(room)
    assert room.target() == before


@pytest.mark.parametrize("version", ["2.4.0", "3.9.0", None, "x"])
def test_017_other_versions_are_refused_with_those_that_are_supported(version: str | None) -> None:
    room = Room()
    room.config("99-a", {"ignition": {} if version is None else {"version": version}})
    room.rest()
    assert "Supported spec versions: 2.2,3.0,3.1,3.2,3.3,3.4,3.5" in says(room)


def test_018_modes_above_0777_are_refused() -> None:
    room = Room()
    room.config("99-a", files({"path": "/etc/x", "mode": 0o4755, "contents": {"source": "data:,x"}}))
    room.rest()
    assert "setuid/setgid/sticky bits are not supported" in says(room) or "cannot exceed 0777" in says(room)


def test_019_unknown_extensions_are_refused_only_beside_a_config() -> None:
    room = Room()
    room.config("99-a", extensions=["emacs"])
    room.rest()
    assert room.rendered()["spec"]["extensions"] == ["emacs"]
    room.merge(f"{MCO}/machineconfigs/99-a", {"spec": {"config": ignition()}})
    room.rest()
    assert "invalid extensions found: [emacs]" in says(room)


def test_020_users_beside_core_are_refused_with_the_culprits_name() -> None:
    room = Room()
    room.config("98-fine", files(("/etc/a", "x")))
    room.config("99-bob", ignition(passwd={"users": [{"name": "bob"}]}))
    room.rest()
    assert "non-core user" in says(room)
    assert 'base config "99-bob"' in says(room)


def test_021_directories_are_refused_on_an_existing_pool() -> None:
    room = Room()
    room.config("99-a", ignition(storage={"directories": [{"path": "/etc/d"}]}))
    room.rest()
    assert "ignition directories section contains changes" in says(room)


def test_022_links_may_go_but_not_come() -> None:
    links = ignition(storage={"links": [{"path": "/etc/l", "target": "/etc/t"}]})
    room = Room(settled=False)
    room.config("99-a", links)
    room.rest()
    assert room.rendered()["spec"]["config"]["storage"]["links"]
    room.delete(f"{MCO}/machineconfigs/99-a")
    room.rest()
    assert "links" not in room.rendered()["spec"]["config"]["storage"]
    room.config("99-a", links)
    room.rest()
    assert "ignition links section contains changes" in says(room)
    (told,) = [text for reason, text in room.events("default") if reason == "RenderRefused"]
    assert told.startswith("pool worker keeps its configuration; MachineConfig 99-a: reconciliation failed between ")


def test_023_a_bad_config_leaves_the_pool_where_it_was_and_says_why() -> None:
    room = Room()
    before = room.pool()["spec"]["configuration"]
    room.config("99-bad", kernelType="odd")
    room.rest()
    assert room.condition("RenderDegraded")["reason"] == ""
    assert says(room) == (
        "Failed to render configuration for pool worker: could not generate rendered MachineConfig: "
        "kernelType=odd is invalid"
    )
    assert room.pool()["spec"]["configuration"] == before
    assert room.condition("RenderDegraded", "master")["status"] == "False"
    told = [text for reason, text in room.events("default") if reason == "RenderRefused"]
    assert told == ["pool worker keeps its configuration; MachineConfig 99-bad: kernelType=odd is invalid"]


def test_024_when_the_bad_config_goes_so_does_the_condition() -> None:
    room = Room()
    before = room.target()
    room.config("99-bad", kernelType="odd")
    room.rest()
    room.delete(f"{MCO}/machineconfigs/99-bad")
    room.rest()
    assert room.condition("RenderDegraded")["status"] == "False"
    assert room.condition("RenderDegraded")["message"] == ""
    assert room.target() == before


def test_026_a_config_without_a_role_is_in_no_pool_and_nothing_is_said() -> None:
    room = Room()
    before = room.target("worker"), room.target("master")
    room.add("machineconfigs", machine_config("99-a", files(("/etc/a", "x")), role=None))
    room.rest()
    assert (room.target("worker"), room.target("master")) == before
    assert room.condition("RenderDegraded")["status"] == "False"


def test_027_a_pool_that_selects_everything_is_told_so_and_not_rendered() -> None:
    room = Room()
    everything = pool("all", "worker", machineConfigSelector={})
    room.add("machineconfigpools", everything)
    room.rest()
    assert room.target("all") == ""
    assert "status" not in room.pool("all")
    told = [text for reason, text in room.events("default") if reason == "SelectingAll"]
    assert told == ["This machineconfigpool is selecting all machineconfigs. A non-empty selector is required."]


def test_028_a_paused_pool_is_rendered_all_the_same() -> None:
    room = Room()
    before = room.target()
    room.merge(f"{MCO}/machineconfigpools/worker", {"spec": {"paused": True}})
    room.config("99-a", files(("/etc/a", "x")))
    room.rest()
    assert room.target() != before
    assert "configuration" not in room.pool()["status"]


def test_a_pool_without_any_config_says_which_selector_found_nothing() -> None:
    room = Room()
    room.add("machineconfigpools", pool("gpu", "gpu"))
    room.rest()
    assert says(room, "gpu").endswith(f"no MachineConfigs found matching selector {ROLE} in (gpu)")


def test_changes_within_five_seconds_are_one_render() -> None:
    room = Room()
    before = len(room.names())
    for number in range(4):
        room.config(f"99-{number}", files((f"/etc/{number}", "x")))
        room.advance(1)
    room.advance(2)
    assert len([name for name in room.names() if name.startswith("rendered-worker")]) == 2
    assert len(room.names()) == before + 4 + 1
    room.rest()
    assert {f"/etc/{number}" for number in range(4)} <= set(room.files())


def test_a_config_of_an_image_takes_the_place_of_the_release_s_and_is_marked() -> None:
    room = Room()
    room.config("99-os", osImageURL="quay.io/me/os:latest")
    room.rest()
    found = room.rendered()
    assert found["spec"]["osImageURL"] == "quay.io/me/os:latest"
    assert found["metadata"]["annotations"]["machineconfiguration.openshift.io/os-image-url-overridden"] == "true"
    assert any(reason == "OSImageURLOverridden" for reason, _ in room.events("default"))


def test_a_rendered_config_belongs_to_its_pool_and_goes_with_it() -> None:
    room = Room()
    owner = room.rendered()["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("MachineConfigPool", "worker", True)
    assert owner["uid"] == room.pool()["metadata"]["uid"]


def test_what_is_too_large_for_a_request_is_refused_before_it_is_written() -> None:
    room = Room()
    before = room.target()
    for number in range(3):
        room.config(f"99-{number}", files((f"/etc/{number}", "x" * (MAX_BYTES // 2))))
    room.rest()
    assert "size validation failed: rendered MachineConfig rendered-worker-" in says(room)
    assert room.target() == before


def test_old_rendered_configs_go_but_never_one_that_is_referred_to() -> None:
    room = Room(kept=2)
    room.node("n1", labels={"node-role.kubernetes.io/worker": ""})
    first = room.target()
    room.merge(
        "/api/v1/nodes/n1",
        {"metadata": {"annotations": {"machineconfiguration.openshift.io/currentConfig": first}}},
    )
    room.config("99-a", files(("/etc/a", "0")))
    for number in range(1, 7):
        room.rest()
        room.merge(f"{MCO}/machineconfigs/99-a", {"spec": {"config": files(("/etc/a", str(number)))}})
    room.rest()
    kept = [name for name in room.names() if name.startswith("rendered-worker")]
    assert first in kept
    assert room.target() in kept
    assert len(kept) == 1 + 1 + 2


def test_a_controller_config_of_another_operator_is_left_to_it() -> None:
    room = Room()
    notes = {"machineconfiguration.openshift.io/generated-by-version": "v4.22.0"}
    room.merge(f"{MCO}/controllerconfigs/machine-config-controller", {"metadata": {"annotations": notes}})
    room.config("99-a", files(("/etc/a", "x")))
    room.rest()
    assert "ignoring controller config generated from v4.22.0 (my version: syncline/1)" in says(room)


def test_base_configs_that_somebody_edits_or_deletes_come_back() -> None:
    room = Room()
    before = {name: room.get(f"{MCO}/machineconfigs/{name}")["spec"] for name in ("00-worker", "01-worker-kubelet")}
    room.merge(f"{MCO}/machineconfigs/00-worker", {"spec": {"kernelArguments": ["x"]}})
    room.delete(f"{MCO}/machineconfigs/01-worker-kubelet")
    room.rest()
    assert {name: room.get(f"{MCO}/machineconfigs/{name}")["spec"] for name in before} == before


def test_a_pool_whose_storage_may_differ_takes_new_disks() -> None:
    room = Room()
    raid = ignition(storage={"raid": [{"name": "r", "level": "raid1", "devices": ["/dev/a", "/dev/b"]}]})
    room.config("99-raid", raid)
    room.rest()
    assert "ignition raid section contains changes" in says(room)
    spec = {"irreconcilableValidationOverrides": {"storage": ["Raid"]}}
    body = thing("MachineConfiguration", "cluster", spec, "operator.openshift.io/v1")
    room.post("/apis/operator.openshift.io/v1/machineconfigurations", body)
    room.rest()
    assert room.condition("RenderDegraded")["status"] == "False"
    assert room.rendered()["spec"]["config"]["storage"]["raid"][0]["name"] == "r"


def test_every_source_of_a_pool_is_named_in_merge_order() -> None:
    room = Room()
    room.config("99-x")
    room.config("100-x")
    room.rest()
    sources = room.pool()["spec"]["configuration"]["source"]
    assert [name_of({"metadata": one}) for one in sources][-2:] == ["100-x", "99-x"]
    assert sources[0]["kind"] == "MachineConfig"


SCENE = SCENES / "machine-config" / "99_kubeinit_extra_config_worker.yaml"


@pytest.mark.skipif(not SCENE.exists(), reason=absent(SCENE))
def test_a_machine_config_of_spec_2_2_as_people_have_it_is_rendered_unchanged() -> None:
    room = Room()
    config = load(SCENE.read_text())
    script = config["spec"]["config"]["storage"]["files"][0]
    room.add("machineconfigs", config)
    room.rest()
    found = room.files()["/usr/local/bin/kubeinit_kubevirt_extra_config_script"]
    assert found["mode"] == 0o755
    assert found["overwrite"] is True
    assert source(found) == script["contents"]["source"]
    assert decoded(found).startswith("#!/usr/bin/bash")
    assert room.rendered()["spec"]["osImageURL"] == controller_config()["spec"]["baseOSContainerImage"]


def decoded(file: Obj) -> str:
    return base64.b64decode(source(file).split(",", 1)[1]).decode()


def test_pools_of_a_definition_without_fields_and_without_a_status_of_its_own_are_rendered() -> None:
    """Repositories bring definitions of their own, which stay as they are."""
    world = World(controllers=controllers())
    for crd in (*machine_config_crds(), *openshift_config_crds()):
        if crd["spec"]["names"]["plural"] in ("machineconfigs", "machineconfigpools"):
            version = {"name": "v1", "served": True, "storage": True}
            anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            crd["spec"]["versions"] = [version | {"schema": {"openAPIV3Schema": anything}}]
        world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    world.post(f"{MCO}/controllerconfigs", controller_config())
    world.post(f"{MCO}/machineconfigpools", pool("worker"))
    world.advance(60)
    world.post(f"{MCO}/machineconfigs", machine_config("99-a", files(("/etc/a", "x"))))
    world.advance(60)
    target = world.get(f"{MCO}/machineconfigpools/worker")["spec"]["configuration"]["name"]
    paths = [one["path"] for one in world.get(f"{MCO}/machineconfigs/{target}")["spec"]["config"]["storage"]["files"]]
    assert paths[-1] == "/etc/a"
    writes = [entry for entry in world.journal if entry.who == "machine-config-render"]
    world.advance(3600)
    assert len([entry for entry in world.journal if entry.who == "machine-config-render"]) - len(writes) < 100


def test_writes_that_are_refused_are_tried_again_ever_more_seldom() -> None:
    room = Room()
    room.config("99-a", files(("/etc/a", "x")))

    class Refusing:
        """The pool may be read, but not written."""

        def send(self, request: Request) -> Response:
            if request.method == "PATCH" and "machineconfigpools" in request.path:
                return Response.refused(Forbidden("not allowed"))
            return room.transport.send(request)

    room.restart(Refusing())
    room.advance(3600)
    tries = [entry for entry in room.journal if entry.who == "machine-config-render" and "refused" in entry.what]
    assert 5 < len(tries) < 120
