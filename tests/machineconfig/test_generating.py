"""KubeletConfigs, ContainerRuntimeConfigs and the cluster's registries on the embedded cluster, in virtual time."""

from __future__ import annotations

import base64
from typing import Any

from tests.machineconfig.rendering import CONFIG, MCO, OPERATOR, POOLS_LABEL, Room, pool, thing

from syncline.kube.objects import Obj

WORKERS = {"matchLabels": {f"{POOLS_LABEL}/worker": ""}}
SUFFIX = "machineconfiguration.openshift.io/mc-name-suffix"


def kubelet(name: str, selector: Any = None, **config: Any) -> Obj:
    spec = {"kubeletConfig": config, "machineConfigPoolSelector": selector or WORKERS}
    return thing("KubeletConfig", name, spec)


def runtime(name: str, **config: Any) -> Obj:
    spec = {"containerRuntimeConfig": config, "machineConfigPoolSelector": WORKERS}
    return thing("ContainerRuntimeConfig", name, spec)


def text_of(file: Obj) -> str:
    return base64.b64decode(file["contents"]["source"].split(",", 1)[1]).decode()


def statuses(room: Room, kind: str, name: str) -> list[tuple[str, str, str]]:
    found = room.get(f"{MCO}/{kind}/{name}")["status"]
    return [(one["type"], one["status"], one["message"]) for one in found["conditions"]]


def test_a_kubelet_config_becomes_the_whole_kubelet_conf_of_its_pool() -> None:
    room = Room()
    before = text_of(room.files()["/etc/kubernetes/kubelet.conf"])
    room.add("kubeletconfigs", kubelet("big", maxPods=500))
    room.rest()
    after = text_of(room.files()["/etc/kubernetes/kubelet.conf"])
    assert "maxPods: 250" in before
    assert "maxPods: 500" in after
    assert "clusterDNS:\n- 10.96.0.10" in after
    assert statuses(room, "kubeletconfigs", "big") == [("Accepted", "True", "Success"), ("Success", "True", "Success")]
    assert "maxPods: 250" in text_of(room.files("master")["/etc/kubernetes/kubelet.conf"])


def test_a_kubelet_config_remembers_what_it_made_and_takes_it_along_when_it_goes() -> None:
    room = Room()
    before = room.target()
    room.add("kubeletconfigs", kubelet("big", maxPods=500))
    room.rest()
    found = room.get(f"{MCO}/kubeletconfigs/big")
    assert found["metadata"]["finalizers"] == ["99-worker-generated-kubelet"]
    assert found["metadata"]["annotations"][SUFFIX] == ""
    assert (
        room.get(f"{MCO}/machineconfigs/99-worker-generated-kubelet")["metadata"]["ownerReferences"][0]["name"] == "big"
    )
    room.delete(f"{MCO}/kubeletconfigs/big")
    room.rest()
    assert not room.exists(f"{MCO}/kubeletconfigs/big")
    assert not room.exists(f"{MCO}/machineconfigs/99-worker-generated-kubelet")
    assert room.target() == before


def test_025_a_refused_kubelet_config_says_why_and_holds_its_pool_back_silently() -> None:
    room = Room()
    before = room.target()
    room.add("kubeletconfigs", kubelet("bad", cgroupDriver="cgroupfs"))
    room.config("99-a", kernelArguments=["x"])
    room.rest()
    told = "Error: KubeletConfiguration: cgroupDriver is not allowed to be set, but contains: cgroupfs"
    assert statuses(room, "kubeletconfigs", "bad") == [("Accepted", "False", told), ("Failure", "True", told)]
    assert room.target() == before
    assert room.condition("RenderDegraded")["status"] == "False"
    passes = [entry for entry in room.journal if entry.who == "machine-config-kubelet"]
    room.advance(3600)
    assert [entry for entry in room.journal if entry.who == "machine-config-kubelet"] == passes
    room.delete(f"{MCO}/kubeletconfigs/bad")
    room.rest()
    assert room.rendered()["spec"]["kernelArguments"] == ["x"]


def test_of_several_kubelet_configs_of_a_pool_the_highest_suffix_wins_as_a_whole() -> None:
    room = Room()
    room.add("kubeletconfigs", kubelet("a", maxPods=100, podPidsLimit=99))
    room.rest()
    room.add("kubeletconfigs", kubelet("b", maxPods=200))
    room.rest()
    conf = text_of(room.files()["/etc/kubernetes/kubelet.conf"])
    assert room.exists(f"{MCO}/machineconfigs/99-worker-generated-kubelet-1")
    assert "maxPods: 200" in conf
    assert "podPidsLimit: 4096" in conf


def test_kubelet_configs_that_come_at_once_do_not_share_a_name() -> None:
    room = Room()
    for name in "abc":
        room.add("kubeletconfigs", kubelet(name, maxPods=100))
    room.rest()
    names = [name for name in room.names() if "generated-kubelet" in name]
    owners = {room.get(f"{MCO}/machineconfigs/{name}")["metadata"]["ownerReferences"][0]["name"] for name in names}
    assert len(names) == 3
    assert owners == {"a", "b", "c"}
    for name in "abc":
        assert statuses(room, "kubeletconfigs", name)[0][0] == "Accepted"


def test_a_kubelet_config_for_no_pool_says_so() -> None:
    room = Room()
    room.add("kubeletconfigs", kubelet("x", {"matchLabels": {"no": "where"}}, maxPods=1))
    room.rest()
    assert "could not find any MachineConfigPool set for KubeletConfig" in statuses(room, "kubeletconfigs", "x")[0][2]
    room.add("machineconfigpools", pool("gpu", "worker", "gpu"))
    room.merge(f"{MCO}/machineconfigpools/gpu", {"metadata": {"labels": {"no": "where"}}})
    room.rest()
    assert room.exists(f"{MCO}/machineconfigs/99-gpu-generated-kubelet")
    assert "maxPods: 1\n" in text_of(room.files("gpu")["/etc/kubernetes/kubelet.conf"])


def test_a_container_runtime_config_becomes_a_drop_in_for_each_field() -> None:
    room = Room()
    room.add("containerruntimeconfigs", runtime("r", pidsLimit=2048, logLevel="debug", overlaySize="8G"))
    room.rest()
    found = room.files()
    assert text_of(found["/etc/crio/crio.conf.d/01-ctrcfg-pidsLimit"]).endswith("pids_limit = 2048\n")
    assert text_of(found["/etc/crio/crio.conf.d/01-ctrcfg-logLevel"]).endswith('log_level = "debug"\n')
    assert 'size = "8G"' in text_of(found["/etc/containers/storage.conf"])
    assert statuses(room, "containerruntimeconfigs", "r") == [("Success", "True", "Success")]
    room.merge(f"{MCO}/containerruntimeconfigs/r", {"spec": {"containerRuntimeConfig": {"pidsLimit": 5}}})
    room.rest()
    assert statuses(room, "containerruntimeconfigs", "r")[-1] == ("Failure", "True", "Error: invalid PidsLimit 5")


def test_mirrors_and_blocked_registries_reach_every_built_in_pool() -> None:
    room = Room()
    sources = {"registrySources": {"blockedRegistries": ["evil.example.com"]}}
    room.post(f"{CONFIG}/images", thing("Image", "cluster", sources, "config.openshift.io/v1"))
    mirrors = {"imageDigestMirrors": [{"source": "quay.io/x", "mirrors": ["mirror.local/x"]}]}
    room.post(f"{CONFIG}/imagedigestmirrorsets", thing("ImageDigestMirrorSet", "m", mirrors, "config.openshift.io/v1"))
    room.rest()
    for name in ("master", "worker"):
        conf = text_of(room.files(name)["/etc/containers/registries.conf"])
        assert 'location = "mirror.local/x"\n    pull-from-mirror = "digest-only"' in conf
        assert 'location = "evil.example.com"\n  blocked = true' in conf
        assert '"evil.example.com": [' in text_of(room.files(name)["/etc/containers/policy.json"])


def test_registries_that_cannot_be_used_are_told_in_events() -> None:
    room = Room()
    blocked = {"registrySources": {"blockedRegistries": ["quay.io/syncline", "b.io"]}}
    room.post(f"{CONFIG}/images", thing("Image", "cluster", blocked, "config.openshift.io/v1"))
    room.rest()
    told = dict(room.events("default"))
    assert "cannot block the repository being used by the payload" in told["RegistryNotBlocked"]
    assert 'location = "b.io"\n  blocked = true' in text_of(room.files()["/etc/containers/registries.conf"])
    for number, policy in enumerate(("NeverContactSource", "AllowContactingSource")):
        rule = {"source": "a.io/x", "mirrors": ["m.io/x"], "mirrorSourcePolicy": policy}
        body = thing("ImageDigestMirrorSet", f"m{number}", {"imageDigestMirrors": [rule]}, "config.openshift.io/v1")
        room.post(f"{CONFIG}/imagedigestmirrorsets", body)
    room.rest()
    assert (
        "conflicting mirrorSourcePolicy is set for the same source" in dict(room.events("default"))["RegistriesRefused"]
    )


def test_settings_of_all_nodes_reach_every_pool() -> None:
    room = Room()
    spec = {"cgroupMode": "v2", "workerLatencyProfile": "LowUpdateSlowReaction"}
    room.post(f"{CONFIG}/nodes", thing("Node", "cluster", spec, "config.openshift.io/v1"))
    room.rest()
    assert room.rendered("master")["spec"]["kernelArguments"] == [
        "systemd.unified_cgroup_hierarchy=1",
        'cgroup_no_v1="all"',
    ]
    assert "nodeStatusUpdateFrequency: 1m0s" in text_of(room.files()["/etc/kubernetes/kubelet.conf"])
    assert "nodeStatusUpdateFrequency: 10s" in text_of(room.files("master")["/etc/kubernetes/kubelet.conf"])


def test_the_effective_policies_stand_in_the_status_with_the_generation_they_are_of() -> None:
    room = Room()
    actions = [{"type": "None"}]
    spec = {"nodeDisruptionPolicy": {"files": [{"path": "/etc/motd", "actions": actions}]}}
    path = f"{OPERATOR}/machineconfigurations"
    room.post(path, thing("MachineConfiguration", "cluster", spec, "operator.openshift.io/v1"))
    room.rest()
    found = room.get(f"{path}/cluster")
    policies = found["status"]["nodeDisruptionPolicyStatus"]["clusterPolicies"]
    assert policies["files"][-1] == {"path": "/etc/motd", "actions": actions}
    assert len(policies["files"]) == 14
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
