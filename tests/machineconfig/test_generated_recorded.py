"""Recorded answers of the controllers that make MachineConfigs from other objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge, same_text, without_nil

from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.generating.kubelet.cgroups import CgroupError, with_cgroup_arguments
from syncline.machineconfig.generating.kubelet.files import (
    KubeletError,
    accepted_conditions,
    invalid_kubelet_config,
    is_control_plane,
    kubelet_files,
    latency_profile,
)
from syncline.machineconfig.generating.naming import KUBELET, RUNTIME, GeneratedError, generated_name
from syncline.machineconfig.generating.runtime.files import (
    dropin_files,
    invalid_runtime_config,
    needs_storage,
    runtime_condition,
    storage_file,
)
from syncline.machineconfig.generating.runtime.mirrors import MirrorRules, RegistryError, registries_conf
from syncline.machineconfig.generating.runtime.registries import (
    PayloadError,
    RegistryLists,
    policy_json,
    registry_lists,
    search_file,
    wants_registries,
)
from syncline.machineconfig.generating.runtime.toml import TomlError

Case = dict[str, Any]
GENERATORS = {"kubeletname": KUBELET, "ctrcfgname": RUNTIME}


@pytest.mark.parametrize("case", [*cases("kubeletname"), *cases("ctrcfgname")], ids=lambda case: case["id"])
def test_names_of_generated_configs(case: Case) -> None:
    given = case["input"]
    configs = given.get("configs") or []
    config = next((one for one in configs if name_of(one) == given["name"]), {"metadata": {"name": given["name"]}})
    try:
        name = generated_name(
            GENERATORS[case["kind"]], given["pool"], config, configs, given.get("machineConfigs") or []
        )
        judge(case, name == case["expect"].get("name"), name)
    except GeneratedError as error:
        judge(case, same_text(case["expect"].get("error"), str(error)), str(error))


@pytest.mark.parametrize("case", cases("cgroups"), ids=lambda case: case["id"])
def test_kernel_arguments_of_cgroups(case: Case) -> None:
    given = case["input"]
    mode = dig(given, "nodeConfig", "spec", "cgroupMode", default="")
    before = dig(given, "config", "spec", "kernelArguments", default=[]) or []
    try:
        got: Obj = {"kernelArguments": with_cgroup_arguments(mode, before)}
    except CgroupError as error:
        got = {"error": str(error)}
    judge(case, without_nil(got) == without_nil(case["expect"]), got)


@pytest.mark.parametrize("case", cases("ctrcfg"), ids=lambda case: case["id"])
def test_files_of_container_runtime_configs(case: Case) -> None:
    given = case["input"]
    config, gate = given["config"], bool(given.get("additionalStorage"))
    invalid = invalid_runtime_config(config)
    got: Obj = {"invalid": invalid, "condition": runtime_condition(invalid), "files": []}
    if invalid is None:
        if needs_storage(config, additional_storage=gate):
            try:
                got["files"].append(storage_file(given["storageConf"], config, additional_storage=gate))
            except TomlError as error:
                got["storageError"] = str(error)
        got["files"] += dropin_files(config, additional_storage=gate)
    got["files"] = [{"path": one.path, "text": one.text} for one in got["files"]]
    expected = dict(case["expect"])
    agrees = same_text(expected.pop("storageError", None), got.pop("storageError", None))
    judge(case, agrees and without_nil(got) == without_nil(expected), got)


@pytest.mark.parametrize("case", cases("registries"), ids=lambda case: case["id"])
def test_registries_of_the_cluster(case: Case) -> None:
    given, expected = case["input"], dict(case["expect"])
    spec = given.get("imageSpec")
    sources = (spec or {}).get("registrySources") or {}
    rules = MirrorRules(
        tuple(given.get("imageDigestMirrorSets") or ()),
        tuple(given.get("imageTagMirrorSets") or ()),
        tuple(given.get("imageContentSourcePolicies") or ()),
    )
    got: Obj = {}
    lists, stops = RegistryLists(), False
    try:
        lists = registry_lists(given["releaseImage"], spec, rules)
        got["blockedError"] = lists.error
    except PayloadError as error:
        got["blockedError"], stops = str(error), True
    got |= {"registriesBlocked": lists.blocked, "policyBlocked": lists.policy_blocked, "allowed": lists.allowed}
    got["goesOn"] = True if got["blockedError"] and not stops else None
    if not stops:
        got |= registry_files(given, lists, sources, rules)
    if "policyJSON" in got:
        got["policyJSON"] = json.loads(got["policyJSON"])
    texts = ("blockedError", "registriesError", "policyError")
    agrees = all(same_text(expected.pop(key, None), got.pop(key, None)) for key in texts)
    plain = json.loads(json.dumps(got))
    judge(case, agrees and without_nil(plain) == without_nil(expected), got)


def registry_files(given: Obj, lists: RegistryLists, sources: Obj, rules: MirrorRules) -> Obj:
    got: Obj = {}
    if wants_registries(sources, lists, rules):
        try:
            insecure = sources.get("insecureRegistries") or []
            got["registriesConf"] = registries_conf(given["registriesConf"], insecure, lists.blocked or (), rules)
        except RegistryError as error:
            got["registriesError"] = str(error)
    if lists.policy_blocked or lists.allowed:
        try:
            got["policyJSON"] = policy_json(given["policyJSON"], lists, given["releaseImage"])
        except RegistryError as error:
            got["policyError"] = str(error)
    if sources.get("containerRuntimeSearchRegistries") is not None:
        one = search_file(sources["containerRuntimeSearchRegistries"])
        got["searchFiles"] = [{"path": one.path, "text": one.text}]
    return got


@pytest.mark.parametrize("case", cases("kubeletconfig"), ids=lambda case: case["id"])
def test_files_of_kubelet_configs(case: Case) -> None:
    given, expected = case["input"], dict(case["expect"])
    config, pool, original = given["kubeletConfig"], given["pool"], given["original"]
    invalid = invalid_kubelet_config(config, pool)
    got: Obj = {"invalid": invalid, "error": None, "controlPlanePool": is_control_plane(pool)}
    if invalid is None:
        if name_of(pool) == "worker" and "nodeConfig" in given:
            original, got["nodeConfigError"] = latency_profile(original, given["nodeConfig"])
        try:
            files = kubelet_files(config, original)
            got["files"] = [{"path": one.path, "mode": 420, "overwrite": True, "text": one.text} for one in files]
        except KubeletError as error:
            got["error"] = str(error)
    got["conditions"] = accepted_conditions(got["invalid"] or got["error"])
    agrees = all(
        same_text(expected.pop(key, None), got.pop(key, None)) for key in ("invalid", "error", "nodeConfigError")
    )
    for one, other in zip(expected["conditions"], got["conditions"], strict=True):
        agrees = agrees and same_text(one.pop("message"), other.pop("message"))
    judge(case, agrees and without_nil(got) == without_nil(expected), got)
