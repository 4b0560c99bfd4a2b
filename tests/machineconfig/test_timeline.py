"""What a roll-out looks like while it runs and afterwards: where a node is, and the bars of all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.room import NODES, POOLS, RECORDS, PoolWorld
from tests.machineconfig.test_causes import NODE, POOL, found, lines
from tests.machineconfig.test_machines_updated import apply, world

from syncline.base.cause import Cause
from syncline.base.clock import format_time, parse_time
from syncline.cli.views.timeline import describe_timeline, draw_timeline, timeline_document
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.causes.progress import progress_of
from syncline.machineconfig.names import CURRENT, DESIRED
from syncline.machineconfig.nodes.timeline import NodeTimeline, Outcome, Stretch, Timeline, timeline_of

SVG = "{http://www.w3.org/2000/svg}"


def workers(one: PoolWorld) -> list[Obj]:
    return [node for node in one.get(NODES)["items"] if name_of(node).startswith("worker")]


def observed(one: PoolWorld) -> Timeline:
    events = one.get("/api/v1/events")["items"]
    return timeline_of(one.get(f"{POOLS}/worker"), workers(one), events, one.clock.now())


@dataclass(frozen=True)
class Rolled:
    """One roll-out, seen on its way and afterwards; the world is not changed by those who look."""

    one: PoolWorld
    aim: str
    under_way: Timeline
    told: Told
    pool_lines: tuple[str, ...]
    record: Obj


@pytest.fixture(scope="module")
def rolled() -> Rolled:
    one = world(3)
    aim = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.driver.until(lambda: one.counts()[1] == 1 and bool(rebooting(one)), limit_s=1200)
    node = rebooting(one)
    told = Told(node, found(one, NODE, node).cause, found(one, NODE, node).blocked)
    under_way, text, record = observed(one), tuple(lines(one, POOL, "worker")), one.get(f"{RECORDS}/{node}")
    one.driver.until(lambda: one.updated(aim), limit_s=1200)
    return Rolled(one, aim, under_way, told, text, record)


@dataclass(frozen=True)
class Told:
    node: str
    cause: Cause
    blocked: bool


def rebooting(one: PoolWorld) -> str:
    """The node that is down just now, empty where none is."""
    down = [name for name, node in one.nodes().items() if node_condition(node, "Ready") != "True"]
    return down[0] if down else ""


def node_condition(node: Obj, kind: str) -> str:
    found = [each for each in dig(node, "status", "conditions", default=[]) if each["type"] == kind]
    return str(found[0]["status"]) if found else ""


def test_a_finished_roll_out_tells_when_each_node_was_drained_and_rebooted(rolled: Rolled) -> None:
    drawn = observed(rolled.one)
    assert (drawn.config, drawn.done, drawn.most_at_once) == (rolled.aim, 3, 1)
    assert [each.outcome for each in drawn.nodes] == [Outcome.DONE] * 3
    for each, following in pairwise(drawn.nodes):
        assert each.ended is not None and following.targeted is not None and each.ended <= following.targeted
    for each in drawn.nodes:
        assert [span.stretch for span in each.spans] == [Stretch.DRAINS, Stretch.REBOOTS]
        assert each.spans[0].since == each.targeted and each.spans[1].until == each.ended
    assert drawn.ended == drawn.nodes[-1].ended


def test_while_it_runs_one_node_is_at_work_and_the_others_wait(rolled: Rolled) -> None:
    drawn = rolled.under_way
    assert [each.outcome for each in drawn.nodes] == [Outcome.DONE, Outcome.WORKING, Outcome.WAITING]
    assert drawn.ended is None and drawn.nodes[1].spans[-1].until is None
    text = describe_timeline(drawn, 100)
    assert text.splitlines()[0].startswith(f"worker → {rolled.aim}: 1 of 3 nodes after ")
    assert f"1 wait for their turn: {drawn.nodes[2].node}" in text and "›" in text


def test_the_picture_is_one_svg_with_a_bar_for_each_stretch_and_no_links_elsewhere(rolled: Rolled) -> None:
    text = draw_timeline(observed(rolled.one))
    root = ElementTree.fromstring(text)
    bars = [each for each in root.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert len(bars) == 6 and "href" not in text and "<script" not in text
    assert {each.findtext(f"{SVG}title", "").split()[0] for each in bars} == {"worker-0", "worker-1", "worker-2"}


def test_the_picture_has_colours_for_dark_screens_a_length_for_each_node_and_no_empty_legend(rolled: Rolled) -> None:
    text = draw_timeline(observed(rolled.one))
    texts = [each.text for each in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert "prefers-color-scheme:dark" in text
    assert [each for each in texts if each in ("50s", "51s", "52s")] and "changed in place" not in texts
    assert {"drained and written", "reboots"} <= set(texts)
    working = draw_timeline(rolled.under_way)
    assert any(str(each.text).endswith("s …") for each in ElementTree.fromstring(working).iter(f"{SVG}text"))


def test_names_that_look_like_markup_stay_text_in_the_picture(rolled: Rolled) -> None:
    found = rolled.one.get(f"{NODES}/worker-0")
    node = found | {"metadata": found["metadata"] | {"name": "<b>&"}}
    at = rolled.one.clock.now()
    event = {
        "involvedObject": {"kind": "MachineConfigPool", "name": "worker"},
        "reason": "SetDesiredConfig",
        "message": f"Targeted node <b>& to MachineConfig: {rolled.aim}",
        "lastTimestamp": format_time(at),
    }
    text = draw_timeline(timeline_of(rolled.one.get(f"{POOLS}/worker"), [node], [event], at))
    assert "&lt;b&gt;&amp;" in text and ElementTree.fromstring(text) is not None


def test_the_document_has_seconds_and_instants_and_leaves_out_what_is_unknown(rolled: Rolled) -> None:
    document = json.loads(json.dumps(timeline_document(observed(rolled.one))))
    assert document["done"] == 3 and document["mostAtOnce"] == 1
    assert all(each["seconds"] >= 50 and each["is"] == "done" for each in document["nodes"])
    quiet = timeline_of(rolled.one.get(f"{POOLS}/worker"), rolled.one.get(NODES)["items"], [], rolled.one.clock.now())
    assert all("targeted" not in each and "seconds" not in each for each in timeline_document(quiet)["nodes"])


def test_an_earlier_config_is_told_as_long_as_its_events_live(rolled: Rolled) -> None:
    nodes = [node | {"metadata": node["metadata"] | {"annotations": elsewhere(node)}} for node in workers(rolled.one)]
    events = rolled.one.get("/api/v1/events")["items"]
    pool = rolled.one.get(f"{POOLS}/worker")
    earlier = timeline_of(pool, nodes, events, rolled.one.clock.now(), rolled.aim)
    assert earlier.done == 3 and earlier.ended == observed(rolled.one).ended


def elsewhere(node: Obj) -> dict[str, str]:
    return annotations_of(node) | {CURRENT: "rendered-worker-next", DESIRED: "rendered-worker-next"}


def test_an_update_in_place_is_one_stretch_without_a_reboot(rolled: Rolled) -> None:
    node = workers(rolled.one)[0]
    events = [
        event for event in rolled.one.get("/api/v1/events")["items"] if event["reason"] not in ("Drain", "Reboot")
    ]
    pool = rolled.one.get(f"{POOLS}/worker")
    (drawn,) = timeline_of(pool, [node], events, rolled.one.clock.now()).nodes
    assert [span.stretch for span in drawn.spans] == [Stretch.IN_PLACE] and drawn.outcome is Outcome.DONE


def test_a_drain_counts_where_the_event_of_its_target_is_written_after_it(rolled: Rolled) -> None:
    """On a busy cluster the agent begins before the controller has written its Event."""
    nodes, now = workers(rolled.one), rolled.one.clock.now()
    events = []
    for event in rolled.one.get("/api/v1/events")["items"]:
        if event["message"].startswith("Targeted node "):
            at = parse_time(event["lastTimestamp"]) + timedelta(seconds=20)
            event = event | {"lastTimestamp": format_time(at)}
        events.append(event)
    drawn = timeline_of(rolled.one.get(f"{POOLS}/worker"), nodes, events, now)
    assert [[span.stretch for span in one.spans] for one in drawn.nodes] == [
        [span.stretch for span in one.spans] for one in observed(rolled.one).nodes
    ]


def test_explain_says_where_a_node_is_since_when_and_what_comes_then(rolled: Rolled) -> None:
    told = rolled.told
    assert told.cause.state == "rebooting" and told.cause.since is not None and not told.blocked
    assert told.cause.message.endswith("; then it checks its disk, is uncordoned and done")
    assert "1 of 3 nodes" in rolled.pool_lines[0] and "1 waits for its turn, 1 at a time" in rolled.pool_lines[0]
    assert rolled.pool_lines[1].startswith(f"  Node {told.node} rebooting for ")


def test_a_reboot_that_takes_too_long_is_somebodys_business(rolled: Rolled) -> None:
    at = progress_of(rolled.record, rolled.aim)
    assert at is not None and at.doing == "rebooting" and "console" in at.check
    assert not at.overdue(at.until) and at.overdue(at.until + timedelta(seconds=1))


def test_a_record_of_another_update_tells_nothing_of_this_one(rolled: Rolled) -> None:
    assert progress_of(rolled.record, "rendered-worker-other") is None
    assert progress_of(None, rolled.aim) is None


# -- the picture in the docs ------------------------------------------------------------------------------------------

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "rollout.svg"
SHOP = "/apis/apps/v1/namespaces/default"


def shop(one: PoolWorld) -> None:
    """Eight replicas that take 20 seconds to stop and 15 to start, of which six have to be up."""
    labels = {"app": "shop"}
    slow = {"syncline.dev/stop-seconds": "20", "syncline.dev/ready-seconds": "15"}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    pod = {
        "terminationGracePeriodSeconds": 60,
        "topologySpreadConstraints": [spread | {"labelSelector": {"matchLabels": labels}}],
        "containers": [{"name": "web", "image": "shop:1"}],
    }
    template = {"metadata": {"labels": labels, "annotations": slow}, "spec": pod}
    selector = {"matchLabels": labels}
    one.make(f"{SHOP}/deployments", "Deployment", "shop", {"replicas": 8, "selector": selector, "template": template})
    budgets = f"{SHOP.replace('apps', 'policy')}/poddisruptionbudgets"
    one.make(budgets, "PodDisruptionBudget", "shop", {"minAvailable": 6, "selector": selector})


def test_the_picture_in_the_docs_is_what_is_drawn(update_golden: bool) -> None:
    """Six workers, two at a time, behind a budget."""
    one = world(6)
    one.merge(f"{POOLS}/worker", {"spec": {"maxUnavailable": 2}})
    shop(one)
    one.driver.advance(120)
    aim = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.driver.until(lambda: one.updated(aim), limit_s=3600)
    drawn = observed(one)
    assert drawn.done == 6 and drawn.most_at_once == 2
    text = draw_timeline(drawn)
    if update_golden:
        PICTURE.write_text(text)
    assert text == PICTURE.read_text()


def test_a_pool_in_image_mode_tells_whom_it_targeted_as_another_does() -> None:
    aim, at = "rendered-worker-b", datetime(2026, 9, 1, tzinfo=UTC)
    about = {"kind": "MachineConfigPool", "name": "worker"}
    told = {"involvedObject": about, "reason": "SetDesiredConfigAndOSImage", "lastTimestamp": format_time(at)}
    one = told | {"message": f"Targeted node n-0 to MachineConfig: {aim} / Image: quay.io/os@sha256:1"}
    both = told | {"message": f"Set target for 2 nodes to MachineConfig: {aim} / Image: quay.io/os@sha256:1"}
    node = {"metadata": {"name": "n-0", "annotations": {DESIRED: aim}}}
    pool = {"metadata": {"name": "worker"}, "spec": {"configuration": {"name": aim}}}
    (drawn,) = timeline_of(pool, [node], [one, both], at + timedelta(minutes=1)).nodes
    assert (drawn.targeted, drawn.outcome) == (at, Outcome.WORKING)


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ([], 0),
        ([(0, 5), (5, 9)], 1),
        ([(0, 5), (4, 9), (4, None)], 3),
        ([(0, 9), (1, 2), (3, 4)], 2),
        ([(3, 3)], 0),
    ],
)
def test_who_ends_makes_room_for_who_begins(spans: list[tuple[int, int | None]], most: int) -> None:
    start = datetime(2026, 9, 1, tzinfo=UTC)

    def at(minutes: int | None) -> datetime | None:
        return start + timedelta(minutes=minutes) if minutes is not None else None

    nodes = tuple(NodeTimeline("n", Outcome.DONE, at(since), at(until)) for since, until in spans)
    assert Timeline("worker", "rendered-worker-b", start + timedelta(hours=1), nodes).most_at_once == most
