"""What agents tell Prometheus: one line for each node, under the names that upstream's alerts ask for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.test_machines_updated import apply, host, state, target, world
from tests.machineconfig.test_views import gauges_of

from syncline.cluster.machines.machine import Entry, Layers
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.metrics import agent_metrics
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, REASON, STATE
from syncline.machineconfig.pools.metrics import cluster_metrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def told(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"{name}{{")]


def test_a_node_at_rest_tells_its_config_and_no_trouble() -> None:
    one = world(1)
    text = gauges_of(one)
    [update] = told(text, "mcd_update_state")
    assert update.startswith(f'mcd_update_state{{node="worker-0",config="MachineConfig: {target(one)}",err=""}} 1767')
    for name in ("mcd_config_drift", "mcd_kubelet_state", "mcd_reboots_failed_total", "mcd_pivot_errors_total"):
        assert told(text, name) == [f'{name}{{node="worker-0"}} 0']
    assert told(text, "mcd_state")[0].startswith('mcd_state{node="worker-0",state="Done",reason=""} ')


def test_drift_is_told_with_the_time_at_which_it_was_seen() -> None:
    one = world(1)
    one.until_updated(apply(one, machine_config("99-motd", files(("/etc/motd", "hello")))))
    host(one).machine.root.write("/etc/motd", Entry(content=b"edited"))
    one.driver.until(lambda: state(one) == "Degraded", limit_s=60)
    text = gauges_of(one)
    assert float(told(text, "mcd_config_drift")[0].rpartition(" ")[2]) > 1_700_000_000
    assert 'config="",err="unexpected on-disk state validating' in told(text, "mcd_update_state")[0] or (
        "content mismatch" in told(text, "mcd_update_state")[0]
    )


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("reboot command failed, something is seriously wrong", "mcd_reboots_failed_total"),
        ("error running rpm-ostree rebase x: Failed: exit status 1", "mcd_pivot_errors_total"),
    ],
)
def test_what_upstream_counts_is_one_while_the_node_says_so(reason: str, name: str) -> None:
    one = world(0)
    notes = {CURRENT: "rendered-a", CURRENT_IMAGE: "i@1", STATE: "Degraded", REASON: reason}
    failed: Obj = {"metadata": {"name": "a", "annotations": notes}}
    stranger: Obj = {"metadata": {"name": "b"}}
    found = {family: values for family, _, values in agent_metrics([failed, stranger], {}, one.clock.now())}
    assert found[name] == [((("node", "a"),), 1.0)]


def test_a_kubelet_that_is_away_counts_its_looks() -> None:
    """Upstream's alert asks for more than two."""
    one = world(1)
    host(one).machine.power_off(one.clock.now())
    one.driver.advance(180)
    assert float(told(gauges_of(one), "mcd_kubelet_state")[0].rpartition(" ")[2]) > 2


@pytest.mark.parametrize(
    ("told", "system", "version"),
    [
        ("Red Hat Enterprise Linux CoreOS 418.94.202501 (Ootpa)", "RHCOS", "418.94.202501"),
        ("Fedora CoreOS 41.20250101.3.0", "FCOS", "41.20250101.3.0"),
        ("CentOS Stream CoreOS 9.0.20250101-0", "SCOS", "9.0.20250101-0"),
        ("Debian GNU/Linux 12 (bookworm)", "DEBIAN", ""),
        ("quay.io/os@sha256:1", "unsupported", ""),
        ("", "unsupported", ""),
    ],
)
def test_the_system_of_a_node_is_told_with_upstreams_short_name(told: str, system: str, version: str) -> None:
    node: Obj = {"metadata": {"name": "a", "annotations": {CURRENT: "x"}}, "status": {"nodeInfo": {"osImage": told}}}
    found = {family: values for family, _, values in agent_metrics([node], {}, NOW)}
    assert found["mcd_host_os_and_version"] == [((("node", "a"), ("os", system), ("version", version)), 1.0)]


def test_packages_that_no_extension_brings_are_counted() -> None:
    one, name = world(1), "mcd_local_unsupported_packages"
    assert told(gauges_of(one), name) == [f'{name}{{node="worker-0"}} 0']
    machine = host(one).machine
    machine.set_layers(Layers(("htop", "usbguard"), ("nano",)))
    machine.request_reboot("by hand", one.clock.now())
    one.driver.advance(200)
    assert told(gauges_of(one), name) == [f'{name}{{node="worker-0"}} 2']
    assert state(one) == "Done"


RULES = (
    "os_image_url_override",
    "mco_mosc_count",
    "mcc_drain_err",
    "mcc_pool_alert",
    "mcc_boot_image_skew_enforcement_none",
    "ocl_build_state",
    "mcd_reboots_failed_total",
    "mcd_pivot_errors_total",
    "mcd_kubelet_state",
)
"""What upstream's rules ask the operator's own parts for, but for counters of builds, which nothing makes here."""


def test_every_metric_that_upstreams_alerts_ask_for_is_told() -> None:
    text = gauges_of(world(1))
    assert [name for name in RULES if f"# TYPE {name} gauge" not in text] == []


@pytest.mark.parametrize(
    ("mode", "infra", "value"),
    [
        ("None", {}, 1.0),
        ("Manual", {}, 0.0),
        ("", {}, 0.0),
        ("None", {"controlPlaneTopology": "SingleReplica"}, 0.0),
        ("None", {"platformStatus": {"type": "BareMetal"}}, 0.0),
    ],
)
def test_boot_images_that_nobody_minds_are_told_where_machines_come(mode: str, infra: Obj, value: float) -> None:
    setting: Obj = {"status": {"bootImageSkewEnforcementStatus": {"mode": mode}}}
    families = cluster_metrics(setting, {"spec": {"infra": {"status": infra}}}, [], [], [])
    found = {name: values for name, _, values in families}
    assert found["mcc_boot_image_skew_enforcement_none"] == [((), value)]
    assert found["mco_mosc_count"] == [((), 0.0)]


def test_the_state_of_a_pools_image_is_told() -> None:
    pool: Obj = {"metadata": {"name": "worker"}, "spec": {"configuration": {"name": "r"}}}
    config: Obj = {"metadata": {"name": "worker"}, "spec": {"machineConfigPool": {"name": "worker"}}}
    spec = {"machineConfig": {"name": "r"}, "machineOSConfig": {"name": "worker"}}
    build: Obj = {"metadata": {"name": "b"}, "spec": spec}
    states = []
    for conditions in (
        [],
        [("Building", "True")],
        [("Building", "False"), ("Failed", "True")],
        [("Succeeded", "True")],
    ):
        build["status"] = {"conditions": [{"type": kind, "status": said} for kind, said in conditions]}
        found = {name: values for name, _, values in cluster_metrics(None, None, [pool], [config], [build])}
        [(labels, value)] = found["ocl_build_state"]
        states.append((dict(labels), value))
    assert states == [
        ({"pool": "worker", "state": state}, 1.0) for state in ("pending", "building", "failed", "succeeded")
    ]
