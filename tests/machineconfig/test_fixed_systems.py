"""Machines whose kernel and packages nobody here can change: what is asked beyond files is refused, not passed over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from syncline.control.plan import Patch, Plan
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.hosts import FixedSystem, HostFacts
from syncline.machineconfig.agent.planning.observe import AgentObserved, Provisioning
from syncline.machineconfig.agent.planning.plan import plan_agent
from syncline.machineconfig.agent.steps import CheckDisk, Checked, Provision
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, DONE, REASON, STATE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEBIAN = FixedSystem("Debian GNU/Linux 12", "root=/dev/vda quiet nosmt")


def machine_config(name: str, **spec: Any) -> Obj:
    return {
        "kind": "MachineConfig",
        "metadata": {"name": name},
        "spec": {"config": {"ignition": {"version": "3.5.0"}}} | spec,
    }


def planned(wanted: Obj, system: FixedSystem | None, *, joins: bool = False, architecture: str = "") -> Plan:
    """Of a machine at "old" that is to have ``wanted``, its disk looked at already."""
    notes = {} if joins else {CURRENT: "old", DESIRED: "new", STATE: DONE}
    labels = {"kubernetes.io/arch": architecture} if architecture else {}
    metadata = {"name": "edge", "annotations": notes, "labels": labels}
    node: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    old = machine_config("old")
    facts = HostFacts("boot", stored=None if joins else old, fixed=system)
    observed = AgentObserved(
        node,
        facts,
        None if joins else old,
        wanted,
        provisioning=Provisioning("new", wanted) if joins else None,
        policies={},
    )
    plan = plan_agent(observed, NOW)
    if any(isinstance(one, CheckDisk) for step in plan.steps for one in step):
        plan = plan_agent(replace(observed, checked=Checked(None)), NOW)
    return plan


def told(plan: Plan) -> dict[str, str]:
    found: dict[str, str] = {}
    for step in plan.steps:
        for one in step:
            if isinstance(one, Patch):
                found |= one.body["metadata"]["annotations"]
    return found


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"kernelArguments": ["mitigations=off"]}, "spec.kernelArguments: missing expected kernel arguments: [mitigat"),
        ({"kernelArguments": ["quiet mitigations=off"]}, "missing expected kernel arguments: [mitigations=off]"),
        ({"kernelType": "realtime"}, 'spec.kernelType: found "realtime"'),
        ({"extensions": ["usbguard"]}, "spec.extensions: found [usbguard]"),
    ],
)
@pytest.mark.parametrize("joins", [False, True])
def test_what_needs_rpm_ostree_is_refused_by_a_system_without_it(spec: Obj, why: str, joins: bool) -> None:
    said = told(planned(machine_config("new", **spec), DEBIAN, joins=joins))
    assert said[STATE] == ("Degraded" if joins else "Unreconcilable")
    assert why in said[REASON]
    assert "Debian GNU/Linux 12 is no image of CoreOS" in said[REASON]
    assert CURRENT not in said


@pytest.mark.parametrize(
    "spec",
    [
        {"kernelArguments": ["quiet", "nosmt"]},  # somebody has set them already
        {"kernelArguments": []},
        {"kernelType": "default"},
        {"osImageURL": "registry/os@sha256:1"},  # the image of the others in the pool
        {},
    ],
)
def test_what_is_so_already_or_concerns_images_alone_is_not(spec: Obj) -> None:
    assert told(planned(machine_config("new", **spec), DEBIAN)).get(STATE) == "Working"
    joined = planned(machine_config("new", **spec), DEBIAN, joins=True)
    assert any(isinstance(one, Provision) for step in joined.steps for one in step)


def test_systems_with_rpm_ostree_are_asked_for_everything() -> None:
    assert told(planned(machine_config("new", kernelArguments=["x"]), None)).get(STATE) == "Working"


@pytest.mark.parametrize("joins", [False, True])
def test_a_kernel_of_another_architecture_is_refused_before_the_cordon(joins: bool) -> None:
    wanted = machine_config("new", kernelType="64k-pages")
    said = told(planned(wanted, None, joins=joins, architecture="amd64"))
    assert (
        "spec.kernelType: 64k-pages is only supported for aarch64 architecture, and this node is amd64" in said[REASON]
    )
    assert DESIRED_DRAIN not in said and CURRENT not in said
    for architecture in ("arm64", ""):
        assert REASON not in told(planned(wanted, None, architecture=architecture))
