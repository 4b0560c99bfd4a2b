"""What agents tell Prometheus: one line for each node, under the names that upstream's alerts ask for."""

from __future__ import annotations

import pytest
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.test_machines_updated import apply, host, state, target, world
from tests.machineconfig.test_views import gauges_of

from syncline.cluster.machines.machine import Entry
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.metrics import agent_metrics
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, REASON, STATE


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
