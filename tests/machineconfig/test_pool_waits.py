"""Why nodes wait: each row is a policy of the pool controller, with what it decides and what it says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from tests.machineconfig.room import APIS, PoolWorld

from syncline.base.clock import format_time
from syncline.control.plan import Emit, Patch, Requeue
from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.names import CURRENT, CURRENT_IMAGE, DESIRED, DESIRED_IMAGE, STATE
from syncline.machineconfig.pools.candidates import CANARIES, ORDER
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.observe import Observed
from syncline.machineconfig.pools.plan import looked, plan
from syncline.machineconfig.pools.rollout import World
from syncline.machineconfig.pools.status import DEGRADED_GOES_ON, PoolNodes, pool_status
from syncline.machineconfig.pools.waits import Reason

A, B = "rendered-a", "rendered-b"
NOW = datetime(2026, 9, 1, tzinfo=UTC)
EARLIER = format_time(NOW - timedelta(hours=1))
IMAGE = "quay.io/os@sha256:1"
OPERATOR: Obj = {
    "metadata": {"name": "o", "labels": {"k8s-app": "machine-config-operator"}},
    "spec": {"nodeName": "n-0"},
}


def node(name: str, desired: str = A, state: str = "Done", role: str = "worker", **more: object) -> Obj:
    notes = {CURRENT: A, DESIRED: desired, STATE: state} | dict(more.pop("notes", {}))  # type: ignore[call-overload]
    labels = {f"node-role.kubernetes.io/{role}": ""}
    return {"metadata": {"name": name, "labels": labels, "annotations": notes}, "spec": dict(more), "status": {}}


def pool(name: str = "worker", notes: dict[str, str] | None = None, updating: Obj | None = None, **spec: object) -> Obj:
    selector = {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}}
    said = {"type": "Updating", "status": "True", "lastTransitionTime": EARLIER} | (updating or {})
    metadata = {"name": name, "annotations": notes or {}, "generation": 1}
    body = {"nodeSelector": selector, "configuration": {"name": B}} | spec
    return {"metadata": metadata, "spec": body, "status": {"conditions": [said]}}


def config(topology: str = "HighlyAvailable") -> Obj:
    return {"spec": {"infra": {"status": {"controlPlaneTopology": topology}}}}


ARBITERS = config("HighlyAvailableArbiter")


@dataclass(frozen=True)
class Row:
    """``takes``: the nodes that are targeted; ``waits``: why the others are not; ``about``: of which pool."""

    policy: str
    pools: tuple[Obj, ...]
    nodes: tuple[Obj, ...]
    takes: tuple[str, ...] = ()
    waits: tuple[Reason, ...] = ()
    looks: str = "worker"
    about: str = "worker"
    config: Obj | None = field(default_factory=config)
    error: str = ""
    pods: tuple[Obj, ...] = ()
    layering: Layering | None = None


THREE = (node("n-0"), node("n-1"), node("n-2"))
BROKEN = node("n-0", B, "Degraded")
FAILED: Obj = {"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
MASTERS = (node("m-0", role="master"), node("m-1", role="master"))
ARBITER = node("r-0", role="arbiter")

ROWS = (
    Row("one node at a time", (pool(),), THREE, ("n-0",)),
    Row("zero counts as one", (pool(maxUnavailable=0),), THREE, ("n-0",)),
    Row("a limit above the nodes takes all of them", (pool(maxUnavailable=9),), THREE, ("n-0", "n-1", "n-2")),
    Row("a share is rounded down", (pool(maxUnavailable="67%"),), THREE, ("n-0", "n-1")),
    Row("a limit below zero takes nobody", (pool(maxUnavailable=-1),), THREE, waits=(Reason.LIMIT,)),
    Row("and so does a share below zero", (pool(maxUnavailable="-10%"),), THREE, waits=(Reason.LIMIT,)),
    Row("a limit below zero is nothing where nobody is behind", (pool(maxUnavailable=-1),), ()),
    Row(
        "a share of a thousand digits is refused, not counted",
        (pool(maxUnavailable="9" * 5000 + "%"),),
        THREE,
        error="value out of range",
    ),
    Row(
        "a node that is cordoned takes the place",
        (pool(),),
        (node("n-0", unschedulable=True), *THREE[1:]),
        (),
        (Reason.CAPACITY,),
    ),
    Row("a node that fails at this config takes the place", (pool(),), (BROKEN, *THREE[1:]), (), (Reason.CAPACITY,)),
    Row("and leaves one of two", (pool(maxUnavailable=2),), (BROKEN, *THREE[1:]), ("n-1",)),
    Row("a pool that is paused takes nobody", (pool(paused=True),), THREE, waits=(Reason.PAUSED,)),
    Row("a pool that selects every node takes nobody", (pool(nodeSelector={}),), THREE, waits=(Reason.SELECTS_ALL,)),
    Row(
        "canaries go first, and the others wait for all of them",
        (pool(notes={CANARIES: "2"}, maxUnavailable=3),),
        THREE,
        ("n-0", "n-1"),
        (Reason.CANARIES,),
    ),
    Row(
        "canaries that fail stop the pool",
        (pool(notes={CANARIES: "1"}, maxUnavailable=3),),
        (BROKEN, *THREE[1:]),
        (),
        (Reason.CANARIES,),
    ),
    Row(
        "fewer canaries than none are refused",
        (pool(notes={CANARIES: "-1"}),),
        THREE,
        error=f"annotation {CANARIES} is '-1'; give a whole number, or a percentage such as 10%",
    ),
    Row(
        "what has just changed is gathered",
        (pool(updating={"lastTransitionTime": format_time(NOW)}),),
        THREE,
        waits=(Reason.GATHERING,),
    ),
    Row(
        "a pool that has not said that it updates gathers",
        (pool(updating={"status": "False"}),),
        THREE,
        waits=(Reason.GATHERING,),
    ),
    Row("a condition without a time is an old one", (pool(updating={"lastTransitionTime": None}),), THREE, ("n-0",)),
    Row(
        "the node of the operator goes last",
        (pool("master"),),
        tuple(node(f"n-{n}", role="master") for n in range(2)),
        ("n-1",),
        (Reason.OPERATOR,),
        "master",
        "master",
        pods=(OPERATOR,),
    ),
    Row("nothing is done without a ControllerConfig", (pool(),), THREE, config=None, error="not found"),
    Row(
        "masters wait for an arbiter that is down",
        (pool("master"), pool("arbiter")),
        (*MASTERS, node("r-0", role="arbiter", unschedulable=True)),
        (),
        (Reason.QUORUM,),
        "master",
        "master",
        ARBITERS,
    ),
    Row(
        "the arbiter waits for the masters",
        (pool("master"), pool("arbiter")),
        (*MASTERS, ARBITER),
        ("m-0",),
        (Reason.QUORUM,),
        "master",
        "arbiter",
        ARBITERS,
    ),
    Row(
        "arbiters are updated with the masters, by themselves never",
        (pool("master"), pool("arbiter")),
        (*MASTERS, ARBITER),
        (),
        (),
        "arbiter",
        "arbiter",
        ARBITERS,
    ),
    Row(
        "arbiters need their topology",
        (pool("master"), pool("arbiter")),
        (*MASTERS, ARBITER),
        (),
        (Reason.QUORUM,),
        "arbiter",
        "arbiter",
    ),
    Row("arbiters need masters", (pool("arbiter"),), (ARBITER,), (), (Reason.QUORUM,), "arbiter", "arbiter", ARBITERS),
    Row(
        "the arbiter goes on while masters are paused and all there",
        (pool("master", paused=True), pool("arbiter")),
        (*MASTERS, ARBITER),
        ("r-0",),
        (),
        "arbiter",
        "arbiter",
        ARBITERS,
    ),
    Row(
        "and waits where one of them is down",
        (pool("master", paused=True), pool("arbiter")),
        (node("m-0", role="master", unschedulable=True), ARBITER),
        (),
        (Reason.QUORUM,),
        "arbiter",
        "arbiter",
        ARBITERS,
    ),
    Row(
        "without a build nobody moves to an image",
        (pool(),),
        THREE,
        waits=(Reason.IMAGE,),
        layering=Layering({"metadata": {"name": "c"}}),
    ),
    Row(
        "a build that failed stops the pool",
        (pool(),),
        THREE,
        waits=(Reason.IMAGE,),
        error="image build for MachineConfigPool b failed",
        layering=Layering({"metadata": {"name": "c"}, "status": {"currentImagePullSpec": IMAGE}}, FAILED),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.policy)
def test_a_look_decides_and_says_why_the_others_wait(row: Row) -> None:
    layerings = {"worker": row.layering} if row.layering is not None else {}
    world = World(row.pools, row.nodes, controller_config=row.config, operator_pods=row.pods, layerings=layerings)
    mine = next(each for each in row.pools if each["metadata"]["name"] == row.looks)
    _, look = looked(Observed(mine, world), NOW)
    taken = sorted(write.node for write in look.writes if DESIRED in write.annotations)
    assert (tuple(taken), row.error in look.error) == (row.takes, True)
    assert bool(look.error) == bool(row.error)
    assert tuple(each.reason for each in look.waits.get(row.about, ())) == row.waits
    told = [each for each in plan(Observed(mine, world), NOW).actions if isinstance(each, Emit)]
    assert ("RolloutStalled" in {each.event_reason for each in told}) == bool(row.error)
    assert not row.error or look.fix or row.layering is not None, "an error says what to do"


def test_a_pool_in_image_mode_goes_on_although_one_of_its_nodes_failed() -> None:
    """Its condition is not Updating then, as upstream's; its other nodes are none the worse for it."""
    built = [{"type": "Succeeded", "status": "True"}]
    spec = {"machineConfig": {"name": B}, "machineOSConfig": {"name": "c"}}
    layering = Layering(
        {"metadata": {"name": "c"}, "status": {"currentImagePullSpec": IMAGE}},
        {"metadata": {"name": "b"}, "spec": spec, "status": {"conditions": built, "digestedImagePushSpec": IMAGE}},
    )
    broken = node("n-0", B, "Degraded", notes={DESIRED_IMAGE: IMAGE, CURRENT_IMAGE: "old"})
    mine = pool(maxUnavailable=2, updating={"status": "False", "message": DEGRADED_GOES_ON})
    mine["status"]["conditions"].append({"type": "NodeDegraded", "status": "True", "lastTransitionTime": EARLIER})
    world = World([mine], [broken, *THREE[1:]], controller_config=config(), layerings={"worker": layering})
    patched = [each.name for each in plan(Observed(mine, world), NOW).actions if isinstance(each, Patch)]
    assert "n-1" in patched
    fresh = pool(maxUnavailable=2, updating={"lastTransitionTime": format_time(NOW)})
    later = plan(Observed(fresh, World([fresh], THREE, controller_config=config())), NOW)
    assert later.outcome == Requeue(5.0, "changes that come together are taken together", background=False)


def test_the_counts_are_true_while_the_image_of_a_pool_cannot_be_built() -> None:
    """Upstream leaves the status as it was before the build failed."""
    layering = Layering({"metadata": {"name": "c"}, "status": {"currentImagePullSpec": IMAGE}}, FAILED)
    mine = pool()
    world = World([mine], THREE, controller_config=config(), layerings={"worker": layering})
    status = plan(Observed(mine, world), NOW).status[0].new
    assert (status["machineCount"], status["updatedMachineCount"]) == (3, 0)
    said = {each["type"]: each["message"] for each in status["conditions"]}
    assert said["Updating"] == "Pool update stopped due to OS image build failure (mosb: b)"


def test_an_arbiter_that_alone_is_behind_is_updated_with_nothing_else_to_wake_its_masters() -> None:
    one = PoolWorld({})
    infra = {"infra": {"status": {"controlPlaneTopology": "HighlyAvailableArbiter"}}}
    one.merge(f"{APIS}/controllerconfigs/machine-config-controller", {"spec": infra})
    for name, role in (("master-0", "master"), ("master-1", "master"), ("arbiter-0", "arbiter")):
        one.add_node(name, role, born=A)
    for role in ("master", "arbiter"):
        one.pool(role, target=A)
    one.at_rest()
    one.target(B, "arbiter")
    one.until_updated(B, "arbiter", limit_s=900)
    assert annotations_of(one.nodes()["master-0"])[DESIRED] == A


def test_a_limit_that_is_none_is_told_by_an_event_that_names_what_to_write() -> None:
    one = PoolWorld({"worker-0": ("worker",)})
    one.pool(maxUnavailable="60")
    one.driver.advance(60)
    (told,) = set(one.events("RolloutStalled"))
    assert told == (
        "no node of pool worker is updated: maxUnavailable: invalid value for IntOrString: invalid type: string is not "
        "a percentage; spec.maxUnavailable of MachineConfigPool worker is '60'; give a whole number, or a percentage "
        "such as 10%"
    )


def test_what_a_degraded_pool_says_begins_with_a_reason() -> None:
    """The chain of a drain is told although no record has said yet that its node is degraded."""
    status = pool_status(PoolNodes(pool(), [BROKEN], blocked="n-0 cannot be drained"), NOW)
    said = {each["type"]: each["message"] for each in status["conditions"]}
    assert said["NodeDegraded"] == said["Degraded"] == "n-0 cannot be drained"


def test_an_order_that_is_none_counts_as_zero_and_is_told() -> None:
    mine = pool()
    nodes = [node("n-0", notes={ORDER: "last"}), node("n-1", notes={ORDER: "-1"}), node("n-2")]
    _, look = looked(Observed(mine, World([mine], nodes, controller_config=config())), NOW)
    assert [write.node for write in look.writes if DESIRED in write.annotations] == ["n-1"]
    told = [said.message for _, said in look.events if said.reason == "UpdateOrderIgnored"]
    assert told == [f"node n-0: annotation {ORDER} is 'last' and counts as 0; give an integer of at most six digits"]
