"""Applies a scenario to a cluster and observes the result, through a transport; served or virtual.

Entry point: :class:`Stage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.inspection.preview import observed_application
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.base.cause import Cause
from syncline.base.clock import Clock
from syncline.cluster.machines.kubelet.node import node_object
from syncline.cluster.machines.machine import MachineSpec
from syncline.control.executor import run_in_place
from syncline.explain.application import explain_application
from syncline.explain.graph import explain_object
from syncline.explain.naming import object_ref
from syncline.explain.view import View, no_logs
from syncline.gitops.application.manifests import SourceReader
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.application.operating.pools import LEFT
from syncline.kube import client
from syncline.kube.client import Request, Response, Transport
from syncline.kube.kinds.argoproj import APPLICATION, GROUP, VERSION
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, annotations_of, dig, name_of
from syncline.kube.yaml.loading import load_all
from syncline.rehearsal.scenario import (
    Act,
    AddNode,
    Delete,
    Ends,
    NodeShape,
    Patching,
    Scenario,
    ScenarioError,
    Step,
    Until,
)

APPLICATIONS = ResourceInfo(GROUP, VERSION, APPLICATION.kind, "applications", namespaced=True)
NODES = ResourceInfo("", "v1", "Node", "nodes", namespaced=False)
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
BEFORE = "prerequisites"
MANAGER = "syncline-story"
ROLE = "node-role.kubernetes.io"
HELD = "node.cloudprovider.kubernetes.io/uninitialized"
"""The taint of a Node that its cloud has not set up yet."""
SPACES = ("default", "argocd")
"""Namespaces of objects, and of Applications, where a story names none."""
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
REFRESH: Obj = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}


class Stage:
    """A cluster on which a scenario runs."""

    def __init__(self, story: Scenario, transport: Transport, clock: Clock, reader: SourceReader) -> None:
        self.story = story
        self._reader = reader
        self._transport = transport
        self.clock = clock
        self._shown_events: set[tuple[str, int]] = set()

    # -- doing -------------------------------------------------------------------------------------------------------

    def add_nodes(self, *, held: bool = False) -> None:
        """Add the machines. ``held``: no pod is placed on any of them before :meth:`open_nodes`."""
        for node in self.story.nodes:
            taints = (*node.taints, f"{HELD}:NoSchedule") if held else node.taints
            self.act(AddNode(replace(node, taints=taints)))

    def open_nodes(self) -> None:
        """Let pods be placed on machines that are held."""
        for node in self.items("/api/v1/nodes"):
            others = [taint for taint in dig(node, "spec", "taints", default=[]) if taint.get("key") != HELD]
            self.act(Patching(f"node/{name_of(node)}", {"spec": {"taints": others or None}}))

    def stands(self) -> bool:
        """Return whether all machines are up and have the config of their pools."""
        nodes = {name_of(node): node for node in self.items("/api/v1/nodes")}
        mine = [nodes.get(node.name) for node in self.story.nodes]
        if not all(node is not None and _is_ready(node) for node in mine):
            return False
        return not self.story.machine_config or self._pools_stand()

    def _pools_stand(self) -> bool:
        """Return whether the pools count every machine with a role and all of them are updated."""
        pools = self.items(POOLS)
        total = sum(int(dig(pool, "status", "machineCount", default=0) or 0) for pool in pools)
        updated = all(_condition(pool, "Updated") == "True" for pool in pools)
        return updated and total == sum(bool(node.roles) for node in self.story.nodes)

    def prepare(self) -> list[str]:
        """Apply what an administrator installs before the first step; return the names of the objects."""
        return run_in_place(ensure_objects(prerequisites(self.story)), self._transport)

    def begin(self, step: Step, application: Obj) -> None:
        """Create or refresh the Application after the step's commit, then execute the step's acts."""
        story = self.story
        if step is story.steps[0]:
            self._send(client.create(APPLICATIONS, application))
        elif step.change:
            merge = client.PatchType.MERGE
            self._send(client.patch(APPLICATIONS, "argocd", story.name, merge, REFRESH, field_manager=MANAGER))
        for act in step.acts:
            self.act(act)

    def act(self, act: Act) -> None:
        """Do what a person does. Raises ScenarioError if it is refused."""
        match act:
            case AddNode(node=node):
                self._send(client.create(NODES, _node(node), field_manager=MANAGER))
            case Patching(target=target, body=body):
                info, ref = self._resource(target)
                merge = client.PatchType.MERGE
                self._send(client.patch(info, ref.namespace, ref.name, merge, dict(body), field_manager=MANAGER))
            case Delete(target=target):
                info, ref = self._resource(target)
                self._send(client.delete(info, ref.namespace, ref.name))

    def _resource(self, target: str) -> tuple[ResourceInfo, ObjectRef]:
        mapper = Mapper(run_in_place(discover(), self._transport))
        ref = object_ref(mapper, target, SPACES)
        info = mapper.preferred(ref.group_kind)
        assert info is not None, "a reference is made from what is served"
        return info, ref

    def _send(self, request: Request) -> Response:
        answer = self._transport.send(request)
        if not answer.ok:
            raise ScenarioError(f"{request.describe()}: {answer.obj.get('message')}")
        return answer

    # -- seeing ------------------------------------------------------------------------------------------------------

    def items(self, path: str) -> list[Obj]:
        found: list[Obj] = self._send(Request("GET", path)).obj["items"]
        return found

    def table(self, path: str) -> Obj:
        """Return the table that ``kubectl get`` would request for a path."""
        found: Obj = self._send(Request("GET", path, {"includeObject": "None"}, {"accept": TABLE})).obj
        return found

    def applications(self) -> dict[str, Obj]:
        return {name_of(app): app for app in self.items(APPLICATIONS.path("argocd"))}

    def is_over(self, step: Step, commit: str) -> bool:
        """Return whether the Applications have reached the end of the step."""
        return over(self.story, step, commit, self.applications())

    def causes(self) -> dict[str, Cause]:
        """Return by name the causes of all Applications that the scenario waits for."""
        found = self.applications()
        return {name: self.cause(f"app/{name}") for name in self.story.waited_for() if name in found}

    def is_so(self, until: Until) -> bool:
        info, ref = self._resource(until.target)
        answer = self._transport.send(client.get(info, ref.namespace, ref.name))
        if answer.status == 404:
            return False
        return _condition(answer.or_raise(), until.condition) == until.status

    def news(self) -> list[Obj]:
        """Return Events with the scenario's reasons that are new or were repeated since the last call."""
        found = []
        for event in self.items("/api/v1/events"):
            mark = (str(event["metadata"]["uid"]), int(event.get("count") or 1))
            if event.get("reason") in self.story.events and mark not in self._shown_events:
                self._shown_events.add(mark)
                found.append(event)
        return sorted(found, key=lambda event: (said_at(event), int(event["metadata"]["resourceVersion"])))

    def cause(self, target: str) -> Cause:
        """Return the cause that ``syncline explain`` would show."""
        settings = AppSettings()
        look, now = run_in_place(snapshot_of_cluster(application_indices(settings)), self._transport), self.clock.now()
        ref = object_ref(look.cache.mapper, target, SPACES)
        view, obj = View(look.cache, now, no_logs), look.cache.get(ref)
        if obj is None:
            raise ScenarioError(f"{target} does not exist")
        if ref.group_kind != APPLICATION.group_kind:
            return explain_object(view, obj).cause
        observed = observed_application(look.cache, ref, self._reader, settings, now)
        assert observed is not None, "it was just found"
        return explain_application(view, observed).cause


def said_at(event: Obj) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")


def prerequisites(story: Scenario) -> Iterator[Obj]:
    """Yield the objects that an administrator installs first, in the order of the files."""
    for file in sorted((story.folder / BEFORE).glob("*.yaml")):
        for document in load_all(file.read_bytes(), file=str(file)).documents:
            yield document.value


def _node(node: NodeShape) -> Obj:
    labels = {f"{ROLE}/{role}": "" for role in node.roles} | dict(node.labels)
    taints = tuple(_taint(text) for text in node.taints)
    made = node_object(MachineSpec(node.name, node.cpu, node.memory, zone=node.zone, labels=labels, taints=taints))
    return made | {"spec": made["spec"] | ({"unschedulable": True} if node.unschedulable else {})}


def _taint(text: str) -> dict[str, str]:
    named, _, effect = text.rpartition(":")
    key, _, value = named.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _is_ready(node: Obj) -> bool:
    return _condition(node, "Ready") == "True"


def _condition(obj: Obj, kind: str) -> str:
    """Return the status of a condition; a missing condition is not true."""
    conditions = dig(obj, "status", "conditions", default=[])
    return next((str(each.get("status")) for each in conditions if each.get("type") == kind), "False")


# -- the end of a step -----------------------------------------------------------------------------------------------


def over(story: Scenario, step: Step, commit: str, apps: Mapping[str, Obj]) -> bool:
    """Return whether all Applications (by name) that the scenario waits for have reached the end of a step that made
    ``commit``. Applications that the step does not change only have to be idle."""
    moved = {story.name, step.moves} if step.change else set(story.waited_for() if story.commits(step) else ())
    sync = story.syncs(step)
    return all(_reached(apps.get(name), commit if name in moved else "", step, sync) for name in story.waited_for())


def _reached(app: Obj | None, commit: str, step: Step, sync: bool) -> bool:
    status = (app or {}).get("status") or {}
    state = status.get("operationState") or {}
    # With the note of a pool that was left paused, an operation still has work to do.
    busy = app is None or app.get("operation") or LEFT in annotations_of(app)
    if busy and step.ends != Ends.RUNNING:
        return False
    if not sync:
        return state.get("phase") != Ends.RUNNING
    if step.ends != Ends.SUCCEEDED or step.until:
        return (not commit or commit in revisions_of(state.get("syncResult") or {})) and state.get("phase") == step.ends
    compared = status.get("sync") or {}
    calm = state.get("phase") == Ends.SUCCEEDED and dig(status, "health", "status") == "Healthy"
    return calm and (not commit or commit in revisions_of(compared)) and compared.get("status") == "Synced"


def revisions_of(result: Obj) -> list[str]:
    """Return the commits of a comparison or of the result of a sync."""
    return [*(result.get("revisions") or ()), str(result.get("revision") or "")]
