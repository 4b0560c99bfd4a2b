"""What upstream's functions answer where a guess would be wrong; found by comparing both over made-up inputs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.machineconfig.memory_host import MemoryHost

from syncline.ignition.versions.converting import ConversionError, convert_raw_to, refusal
from syncline.ignition.versions.negotiate import parse_accept
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.actions import (
    FIRST_BOOT_REBOOT,
    REBOOT,
    Action,
    drain_needed,
    first_boot_actions,
    update_actions,
)
from syncline.machineconfig.agent.files.writing import UpdateError, update_files
from syncline.machineconfig.agent.planning.changes import Units, changes_between
from syncline.machineconfig.agent.staging.kernel import parsed_arguments, running_of
from syncline.machineconfig.drain.registries import PATH as REGISTRIES
from syncline.machineconfig.drain.registries import RegistriesError, change_is_safe
from syncline.machineconfig.generating.runtime.files import invalid_runtime_config
from syncline.machineconfig.generating.runtime.mirrors import RegistryError
from syncline.machineconfig.generating.runtime.registries import RegistryLists, policy_json
from syncline.machineconfig.names import GENERATED_VERSION
from syncline.machineconfig.pools.candidates import LimitError, max_unavailable
from syncline.machineconfig.pools.nodestate import not_ready
from syncline.machineconfig.pools.status import put_condition
from syncline.machineconfig.pools.validity import summary
from syncline.machineconfig.render.merge import BaseImages, merge_configs
from syncline.machineconfig.render.naming import spec_yaml
from syncline.machineconfig.render.observe import RenderObserved, RenderSettings
from syncline.machineconfig.render.plan import decide
from syncline.machineconfig.render.refusal import RenderError
from syncline.machineconfig.render.rendering import Release
from syncline.machineconfig.server.joining import joining_files

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EMPTY: Obj = {"ignition": {"version": "3.5.0"}}
UNIT: Obj = {"systemd": {"units": [{"name": "a.service", "contents": "[Unit]\n"}]}}
YAML_OF_TEXTS = {
    "a\u0085b": "a b",
    "a \u0085 \u0085 b": "|-\n  a\n  b",
    "a\u2028b": "'a\u2028  b'",
    "a\u2028": "'a\u2028'",
    "a\u2028'": "'a\u2028  '''",
    "a\rb": '"a\\rb"',
    "=": "=",
    "1:30": '"1:30"',
}


@pytest.mark.parametrize("text", YAML_OF_TEXTS)
def test_the_digest_is_taken_of_what_go_writes_although_nobody_could_read_it_back(text: str) -> None:
    assert f"kernelType: {YAML_OF_TEXTS[text]}\n" in spec_yaml({"kernelType": text})


@pytest.mark.parametrize(("quality", "read"), [("1_0", 10.0), ("0x_1p1", 2.0), ("1__0", 1.0), ("_1", 1.0), ("1_", 1.0)])
def test_digits_of_a_quality_may_be_separated(quality: str, read: float) -> None:
    (entry,) = parse_accept(f"a/b;q={quality}")
    assert entry.quality == read


def test_only_exact_versions_are_served() -> None:
    raw = b'{"ignition":{"version":"3.5.0"}}'
    assert convert_raw_to(raw, "3.2.0") == {"ignition": {"version": "3.2.0"}}
    with pytest.raises(ConversionError, match=r"target version 3\.2\.1 is not supported"):
        convert_raw_to(raw, "3.2.1")


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ('"kernelArguments":{"shouldExist":"a"}', "[]types.KernelArgument"),
        ('"passwd":{"users":[{"name":"core","sshAuthorizedKeys":[1]}]}', "types.SSHAuthorizedKey"),
        ('"storage":{"files":[{"path":"/a","user":"root"}]}', "types.NodeUser"),
        ('"storage":{"files":[{"path":"/a","contents":{"httpHeaders":{}}}]}', "types.HTTPHeaders"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_gos_name_of_the_type(part: str, wanted: str) -> None:
    refused = refusal(f'{{"ignition":{{"version":"3.4.0"}},{part}}}'.encode())
    assert refused is not None
    assert refused.rstrip().endswith(f" of type {wanted}")


@pytest.mark.parametrize("limit", ['"5%', "1\\%", "\n1%", "é%"])
def test_a_limit_that_is_no_number_is_quoted_as_go_does(limit: str) -> None:
    with pytest.raises(LimitError) as refused:
        max_unavailable({"metadata": {"name": "worker"}, "spec": {"maxUnavailable": limit}}, 3)
    told = {'"5%': r"\"5", "1\\%": r"1\\", "\n1%": r"\n1", "é%": "é"}[limit]
    assert str(refused.value).endswith(f'invalid value "{told}%": strconv.Atoi: parsing "{told}": invalid syntax')


def test_of_two_conditions_of_a_type_the_first_decides_and_the_last_is_told() -> None:
    told = [{"type": "NodeDegraded", "status": "True", "reason": r, "message": r.upper()} for r in ("a", "b")]
    assert summary({"status": {"conditions": told}}) == 'pool is degraded because nodes fail with "b": "B"'


def test_a_condition_without_a_time_keeps_none() -> None:
    conditions: list[Obj] = [{"type": "Updating", "status": "True", "message": "old", "lastTransitionTime": None}]
    put_condition(conditions, "Updating", True, NOW, message="new")
    assert conditions[0]["lastTransitionTime"] is None


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(RenderError, match="empty machineconfig object"):
        merge_configs([], BaseImages("os", "extensions"))


def test_runc_is_looked_for_under_an_image_of_ones_own_even_if_nothing_is_known_of_it() -> None:
    """The merged configuration says overwrite although nothing is written, so it cannot be read again."""
    spec: dict[str, Any] = {"osImageURL": "quay.io/mine:1"}
    spec["config"] = {"ignition": {"version": "3.5.0"}, "storage": {"files": [{"path": "/etc/empty"}]}}
    mark = {GENERATED_VERSION: "v1"}
    done = decide(
        RenderObserved(
            pool={
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfigPool",
                "metadata": {"name": "worker", "uid": "u"},
                "spec": {"machineConfigSelector": {"matchLabels": {"role": "worker"}}},
            },
            configs=({"metadata": {"name": "a", "labels": {"role": "worker"}}, "spec": spec},),
            controller_config={
                "metadata": {"name": "machine-config-controller", "annotations": mark},
                "status": {"conditions": [{"type": "TemplateControllerCompleted", "status": "True"}]},
            },
            kubelet_configs=(),
            runtime_configs=(),
            settings=RenderSettings(Release("v1", "hash")),
        )
    )
    assert (done.error or "").startswith(
        "pool worker: failed to check runc in generated MachineConfig: failed to parse"
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"logLevel": 'a"b'}, r'invalid LogLevel "a\"b", must be'),
        ({"logSizeMax": "001"}, 'invalid LogSizeMax "001", cannot be less than 8kB'),
        ({"additionalImageStores": [{"path": "/a\n"}]}, r'invalid AdditionalImageStores path "/a\n": must be'),
    ],
)
def test_refused_values_are_told_as_they_were_written(given: Obj, told: str) -> None:
    assert (invalid_runtime_config({"spec": {"containerRuntimeConfig": given}}) or "").startswith(told)


def test_white_space_of_kernel_arguments_is_the_kernels_but_go_trims_what_it_calls_space() -> None:
    assert parsed_arguments(["a\u00a0b", " c\u00a0 ", "\u2003d"]) == ["a\u00a0b", "c", "d"]
    assert running_of(['a"b'], 'a"b\n') == ['a"b']


def test_an_unchanged_registry_is_safe_whatever_it_says() -> None:
    """Two mirrors of one place that pull differently are no change of the one by the other."""
    place = '[[registry.mirror]]\nlocation = "m.io"\n'
    both = f'{place}pull-from-mirror = "digest-only"\n{place}pull-from-mirror = "all"\n'
    text = f'[[registry]]\nlocation = "a.io"\n{both}'.encode()
    assert change_is_safe(text, text)
    assert not change_is_safe(text, text.replace(b'"all"', b'"tag-only"'))


@pytest.mark.parametrize("side", ["old", "new"])
@pytest.mark.parametrize("source", ["", "text"])
def test_registries_whose_contents_cannot_be_read_are_an_error_and_no_empty_file(side: str, source: str) -> None:
    bad: Obj = {"storage": {"files": [{"path": REGISTRIES, "contents": {"source": source}}]}}
    old, new = (bad, {}) if side == "old" else ({}, bad)
    with pytest.raises(RegistriesError, match=r"failed decoding Data URL scheme string:? missing data prefix"):
        drain_needed([Action("Special")], old, new)


def test_of_two_policies_for_one_unit_the_first_decides() -> None:
    units = [{"name": "a.service", "actions": [{"type": kind}]} for kind in ("Reboot", "None")]
    changes = changes_between({"spec": {"config": EMPTY}}, {"spec": {"config": EMPTY | UNIT}})
    assert update_actions(changes, [], Units(added=("a.service",)), {"units": units}) == [REBOOT]


def test_an_empty_list_of_units_is_a_change_from_none_and_the_first_boot_reboots() -> None:
    changes = changes_between({"spec": {"config": EMPTY}}, {"spec": {"config": EMPTY | {"systemd": {"units": []}}}})
    assert changes.units
    assert first_boot_actions(changes, []) == [FIRST_BOOT_REBOOT]


def test_a_condition_without_a_status_is_told_as_empty() -> None:
    node: Obj = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready"}]}}
    assert not_ready(node) == "node n is reporting NotReady="


def test_a_unit_below_something_that_is_no_directory_is_refused_with_the_directory() -> None:
    host = MemoryHost.of({"tree": [{"path": "/etc/systemd", "text": "no directory"}]})
    new = {"systemd": {"units": [{"name": "a.service", "contents": "[Unit]\n"}]}}
    with pytest.raises(UpdateError) as refused:
        update_files(host, {}, new, new["systemd"]["units"])
    assert str(refused.value) == (
        'daemon could not write systemd unit: failed to write systemd unit "a.service": failed to create directory '
        '"/etc/systemd/system": mkdir /etc/systemd: not a directory'
    )


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        ('[{"type": "acceptNothing"}]', 'Unknown policy requirement type "acceptNothing"'),
        ("[{}]", 'Unknown policy requirement type ""'),
        ("[]", "List of verification policy requirements must not be empty"),
    ],
)
def test_a_policy_whose_requirements_nobody_knows_is_not_passed_on(requirements: str, told: str) -> None:
    template = f'{{"default": [{{"type": "reject"}}], "transports": {{"docker-daemon": {{"": {requirements}}}}}}}'
    with pytest.raises(RegistryError, match=f"^error decoding policy json: {told}$"):
        policy_json(template, RegistryLists(allowed=("a.io",)), "q.io/r@sha256:11")


def test_what_is_empty_of_the_metadata_is_not_told_to_a_machine_that_joins() -> None:
    metadata = {"name": "rendered-a", "labels": {}, "annotations": {}, "ownerReferences": []}
    config = {"ignition": {"version": "3.5.0"}}
    files = dict(joining_files({"metadata": metadata, "spec": {"config": config}}, ""))
    encapsulated = json.loads(files["/etc/ignition-machine-config-encapsulated.json"])
    assert encapsulated["metadata"] == {"name": "rendered-a"}
