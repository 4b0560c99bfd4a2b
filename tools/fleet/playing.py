"""Runs the stories in a world and keeps what is there after each step, without what differs from run to run."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from tools.fleet.sides import CLUSTERS, LOOK_S, OURS, THEIRS, Obj, Unmet, World, subject_of

STORIES = Path(__file__).with_name("stories.yaml")
QUIET_S = {THEIRS: 6.0, OURS: 21.0}
"""How long nothing may have moved: upstream's agent looks at objects every 2 s here, ours every 10 s; both up to 90 %
later."""
SHORT_S = 3.0
"""The same for the cluster itself."""
STEP_LIMIT_S, UNTIL_S = 60.0, 100.0
"""How long a step may take, and one that a story waits for."""
MADE_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "selfLink", "generation")
ORDERED = {
    "conditions": lambda each: str(each.get("type")),
    "ownerReferences": lambda each: each["name"],
    "finalizers": str,
}
"""Lists whose order says nothing, and by what they are sorted."""
TIMES = (
    "lastTransitionTime",
    "renewTime",
    "acquireTime",
    "timeAdded",
    "deletionTimestamp",
    "evictionStartTime",
    "time",
)
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
APPLIED = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_HASH = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"https://127\.0\.0\.1:\d+")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def plain(value: Any, *, managers: bool = False) -> Any:
    """``value`` without times, ids, addresses and drawn names; conditions by type, managers as names or not at all.
    What is zero or empty counts as absent: upstream leaves it out or writes it, depending on its patch."""
    if isinstance(value, dict):
        if "metadata" in value and isinstance(value["metadata"], dict):
            value = {**value, "metadata": _metadata(value["metadata"], managers)}
        parts = {key: _part(key, each, managers) for key, each in value.items()}
        return {key: each for key, each in parts.items() if each or each is False}
    if isinstance(value, list):
        return [plain(each, managers=managers) for each in value]
    return _text(value) if isinstance(value, str) else value


def _part(key: str, value: Any, managers: bool) -> Any:
    if key in TIMES and isinstance(value, str):
        return "@time@"
    if key == "uid":
        return "@uid@"
    if key in ("agentID", "agent-id"):
        return "@agent@"
    if key in ORDERED and isinstance(value, list):
        return sorted((plain(each) for each in value), key=ORDERED[key])
    return plain(value, managers=managers)


def _text(value: str) -> str:
    value = _ADDRESS.sub("https://@address@", _TIME.sub("@time@", value))
    return _UID.sub("@uid@", _HASH.sub("@hash@", value))


def _metadata(metadata: Obj, managers: bool) -> Obj:
    kept = {key: each for key, each in metadata.items() if key not in (*MADE_BY_SERVER, "managedFields")}
    if managers:
        kept["managers"] = sorted(
            f"{each['manager']} {each['operation']}" for each in metadata.get("managedFields") or ()
        )
    drawn = metadata.get("generateName")
    if drawn and str(metadata.get("name", "")).startswith(drawn):
        kept["name"] = f"{drawn}*"
    return kept


def _list(found: Obj) -> Any:
    """The items of a list by name."""
    return found.get("items", found)


# -- the way in and out ---------------------------------------------------------------------------------------------


def joining(world: World) -> Obj:
    """A cluster proposes itself, is approved, then accepted."""
    hub, cluster, seen = world.on_hub, world.cluster, {}
    world.begin_agent()
    hub.wait(lambda: hub.look(f"{CLUSTERS}/{cluster}") and world.requests(), "the cluster and its request")
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["proposed"] = _of_cluster(world)
    world.approve()
    hub.wait(lambda: world.requests()[0].get("status", {}).get("certificate"), "the certificate")
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["approved"] = _of_cluster(world)
    often = {"spec": {"leaseDurationSeconds": 10}}  # upstream compares clocks at a renewal, not always at the first
    hub.send("PATCH", f"{CLUSTERS}/{cluster}", often, "application/merge-patch+json")
    world.accept()
    hub.wait(lambda: world.condition("ManagedClusterJoined") == "True", "joined")
    hub.wait(lambda: world.condition("ManagedClusterConditionAvailable") == "True", "available")
    hub.wait(lambda: world.condition("ManagedClusterConditionClockSynced") == "True", "its clock is compared")
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["accepted"] = _of_cluster(world)
    return seen


def leaving(world: World) -> Obj:
    """A cluster is not heard of, comes back, is denied, accepted again, and deleted with a work."""
    hub, cluster, seen = world.on_hub, world.cluster, {}
    short = {"spec": {"leaseDurationSeconds": 2}}
    hub.send("PATCH", f"{CLUSTERS}/{cluster}", short, "application/merge-patch+json")
    world.end_agent()
    hub.wait(lambda: world.condition("ManagedClusterConditionAvailable") == "Unknown", "no longer available")
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["silent"] = _of_cluster(world)
    world.begin_agent()
    hub.wait(lambda: world.condition("ManagedClusterConditionAvailable") == "True", "available again")
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["back"] = _of_cluster(world)
    world.accept(False)
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["denied with works"] = _of_cluster(world)
    works = WORKS.format(cluster)
    for each in hub.send("GET", works)["items"]:
        hub.send("DELETE", f"{works}/{each['metadata']['name']}")
    hub.wait(lambda: world.condition("HubAcceptedManagedCluster") == "False", "denied")
    hub.wait(lambda: world.condition("ManagedClusterConditionAvailable") == "Unknown", "no longer heard of")
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["denied"] = _of_cluster(world)
    world.accept()
    hub.wait(lambda: world.condition("HubAcceptedManagedCluster") == "True", "accepted again")
    hub.wait(lambda: world.condition("ManagedClusterConditionAvailable") == "True", "heard of again", UNTIL_S)
    _quiet(world, [f"{CLUSTERS}/{cluster}"])
    seen["accepted again"] = _of_cluster(world)
    hub.send("DELETE", f"{CLUSTERS}/{cluster}")
    hub.wait(lambda: hub.look(f"{CLUSTERS}/{cluster}") is None, "the deleted cluster is gone")
    time.sleep(SHORT_S)
    seen["deleted"] = _of_cluster(world)
    return seen


def _of_cluster(world: World) -> Obj:
    """All that a hub keeps for a cluster."""
    hub, cluster = world.on_hub, world.cluster
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    found: Obj = {"ManagedCluster": hub.look(f"{CLUSTERS}/{cluster}"), "requests": {}}
    requests = [{"spec": {k: v for k, v in each["spec"].items() if k not in ("request", "uid", "extra")},
                 "metadata": each["metadata"], "subject": subject_of(each),
                 "decided": [c["type"] for c in each.get("status", {}).get("conditions") or ()]}
                for each in world.requests()]  # fmt: skip
    found["requests"] = json.loads(
        json.dumps(requests).replace(f"{cluster}:{_agent_of(requests)}", f"{cluster}:@agent@")
    )
    found["Namespace"] = hub.look(f"/api/v1/namespaces/{cluster}")
    found["Lease"] = hub.look(f"/apis/coordination.k8s.io/v1/namespaces/{cluster}/leases/managed-cluster-lease")
    for kind, path in (
        ("ClusterRole", f"{rbac}/clusterroles"),
        ("ClusterRoleBinding", f"{rbac}/clusterrolebindings"),
        ("Role", f"{rbac}/namespaces/{cluster}/roles"),
        ("RoleBinding", f"{rbac}/namespaces/{cluster}/rolebindings"),
    ):
        listed = [each for each in hub.send("GET", path)["items"] if _concerns(each, cluster)]
        found[kind] = {each["metadata"]["name"]: {k: v for k, v in each.items() if k != "kind"} for each in listed}
    made: Obj = plain(found)
    return made


def _concerns(obj: Obj, cluster: str) -> bool:
    parts = str(obj["metadata"]["name"]).split(":")
    return parts[0] == "open-cluster-management" and (cluster in parts or parts[-1] in ("registration", "work"))


def _agent_of(requests: list[Obj]) -> str:
    names = [name for each in requests for name in each["subject"]["CN"]]
    return names[0].rpartition(":")[2] if names else "@agent@"


# -- stories as data ------------------------------------------------------------------------------------------------


def play(world: World, only: frozenset[str] = frozenset()) -> dict[str, Obj]:
    """What there is after each step of each story, by story and step."""
    stories = [each for each in yaml.safe_load(STORIES.read_text()) if not only or each["story"] in only]
    seen: dict[str, Obj] = {}
    for number in range(max(len(each["steps"]) for each in stories)):
        now = [each for each in stories if number < len(each["steps"])]
        for story in now:
            try:
                _act(world, story, story["steps"][number])
            except (SystemExit, Unmet) as refused:
                seen.setdefault(story["story"], {})[f"step {number + 1} refused"] = plain(str(refused))
            for tried in story["steps"][number].get("tried", ()):
                answers = seen.setdefault(story["story"], {}).setdefault(f"step {number + 1} tried", [])
                answers.append(_tried(world, tried))
        _settle(world, now)
        for story in now:
            seen.setdefault(story["story"], {})[f"step {number + 1}"] = _seen(world, story)
    return seen


def _act(world: World, story: Obj, step: Obj) -> None:
    for obj in step.get("spoke", ()):
        world.on_spoke.apply(_timed(obj))
    for end in ("hub", "spoke"):
        for path in step.get("delete", {}).get(end, ()):
            (world.on_hub if end == "hub" else world.on_spoke).send("DELETE", path)
    for obj in step.get("hub", ()):
        world.on_hub.apply(_timed(obj))
    if "work" in step:
        world.on_hub.apply(
            {
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "ManifestWork",
                "metadata": {"name": story["story"], "namespace": world.cluster},
                "spec": step["work"],
            }
        )
    if "report" in step:
        _report(world, step["report"])


def _tried(world: World, obj: Obj) -> str:
    """What the hub answers to an object."""
    try:
        world.on_hub.apply(_timed(obj))
    except SystemExit as refused:
        return str(plain(str(refused)))
    return "made"


def _timed(obj: Obj) -> Obj:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    made: Obj = json.loads(json.dumps(obj).replace("@now@", now))
    return made


def _report(world: World, report: Obj) -> None:
    """What agents of clusters that are not there would say of their works."""
    link = world.on_hub
    everywhere = "/apis/work.open-cluster-management.io/v1/manifestworks"
    for work in link.send("GET", f"{everywhere}?labelSelector={report['selector']}")["items"]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": status, "reason": "Told", "message": "", "lastTransitionTime": now,
             "observedGeneration": work["metadata"]["generation"]}
            for kind, status in report["conditions"].items()
        ]  # fmt: skip
        path = f"{WORKS.format(work['metadata']['namespace'])}/{work['metadata']['name']}/status"
        link.send("PATCH", path, {"status": {"conditions": conditions}}, "application/merge-patch+json")


def _seen(world: World, story: Obj) -> Obj:
    managers, found = bool(story.get("managers")), {}
    if any("work" in step for step in story["steps"]):
        found["ManifestWork"] = world.on_hub.look(f"{WORKS.format(world.cluster)}/{story['story']}")
        applied = world.on_spoke.send("GET", APPLIED)["items"]
        found["AppliedManifestWork"] = [each for each in applied if each["spec"]["manifestWorkName"] == story["story"]]
    looks: Mapping[str, list[str]] = story.get("look", {})
    for end, link in (("hub", world.on_hub), ("spoke", world.on_spoke)):
        for path in looks.get(end, ()):
            there = link.look(path)
            found[f"{end} {path.rpartition('/namespaces/')[2]}"] = _list(there) if there else None
    on_spoke = {key: plain(each, managers=managers) for key, each in found.items() if key.startswith("spoke ")}
    made: Obj = {key: plain(each) for key, each in found.items()} | on_spoke
    return _by_name(made)


def _by_name(seen: Obj) -> Obj:
    """Lists of objects in the order of their contents, as drawn names do not give one."""
    return {
        key: sorted(each, key=lambda one: json.dumps(one, sort_keys=True)) if isinstance(each, list) else each
        for key, each in seen.items()
    }


def _settle(world: World, stories: list[Obj]) -> None:
    begun, last, since = time.perf_counter(), "", time.perf_counter()
    awaited = [each["until"] for each in stories if "until" in each]
    while time.perf_counter() - begun < (UNTIL_S if awaited else STEP_LIMIT_S):
        seen = json.dumps([_seen(world, each) for each in stories], sort_keys=True)
        if seen != last:
            last, since = seen, time.perf_counter()
        if time.perf_counter() - since >= QUIET_S[world.agent_side] and all(
            _has_status(world, path) for path in awaited
        ):
            return
        time.sleep(LOOK_S)


def _has_status(world: World, path: str) -> bool:
    conditions = ((world.on_hub.look(path) or {}).get("status") or {}).get("conditions") or []
    return any(each["type"] == "Available" for each in conditions)


def _quiet(world: World, paths: list[str], limit_s: float = STEP_LIMIT_S) -> None:
    begun, last, since = time.perf_counter(), "", time.perf_counter()
    while time.perf_counter() - begun < limit_s:
        seen = json.dumps([plain(world.on_hub.look(path)) for path in paths], sort_keys=True)
        if seen != last:
            last, since = seen, time.perf_counter()
        if time.perf_counter() - since >= SHORT_S:
            return
        time.sleep(LOOK_S)
