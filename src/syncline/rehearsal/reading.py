"""Reads a scenario from its folder and validates each value as it is read. Entry point: :func:`read_scenario`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from syncline.kube.yaml.loading import YamlError, load
from syncline.rehearsal.fields import Field
from syncline.rehearsal.scenario import (
    CPU,
    MEMORY,
    PLACE,
    WITHIN,
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
    View,
)

MANIFESTS = (".yaml", ".yml", ".json", ".jsonnet", ".bu", "Kustomization")
"""Extensions of the files that are deployed from a folder without a ``story.yaml``."""
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE = ("name", "roles", "labels", "taints", "cpu", "memory", "zone", "unschedulable")
STEP = ("say", "change", "ends", "moves", "do", "until", "within", "rests", "explain")
SCENARIO = (
    *("about", "namespace", "source", "sources", "syncPolicy", "applications", "steps", "look"),
    *("events", "nodes", "machineConfig"),
)


def read_scenario(folder: Path) -> Scenario:
    """Return the scenario of a folder. Raises :class:`ScenarioError` with key, value and allowed values."""
    file = folder / "story.yaml"
    if not file.is_file():
        return _of_manifests(folder)
    try:
        report = load(file.read_bytes(), file=str(file))
    except YamlError as error:
        raise ScenarioError(str(error)) from error
    if not isinstance(report, dict) or not report.get("steps"):
        raise ScenarioError(f"{file}: found no steps; it needs at least 'steps: [{{say: …}}]'")
    return _scenario(Field(file, "", report).known(*SCENARIO), folder)


def _of_manifests(folder: Path) -> Scenario:
    if stories := sorted(path.parent for path in folder.glob("*/story.yaml")):
        names = ", ".join(str(path) for path in stories)
        text = f"{folder}: holds {len(stories)} stories and is none; name one of them: {names}"
        raise ScenarioError(text, usage=True)
    if not any(path.is_file() and path.name.endswith(MANIFESTS) for path in folder.iterdir()):
        raise ScenarioError(f"{folder}: holds no file that is one of {', '.join(MANIFESTS)}", usage=True)
    source = {"path": folder.name, "targetRevision": "main", "repoURL": PLACE}
    policy = {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"]}
    return Scenario(folder, folder.name, namespace=folder.name, sources=(source,), policy=policy, whole=True)


def _scenario(at: Field, folder: Path) -> Scenario:
    sources = [Field(at.file, "sources", one.value).map() for one in at["sources"].each()]
    steps = tuple(_step(one.known(*STEP)) for one in at["steps"].each())
    for place, step in zip(at["steps"].each()[1:], steps[1:], strict=True):
        if not (step.change or step.acts or step.until or step.rests):
            raise place.wrong("nothing happens in it", "change, do, until or rests")
    machine_config = at["machineConfig"].flag()
    nodes = tuple(_node(one) for one in at["nodes"].each())
    if machine_config and not nodes:
        nodes = (NodeShape("worker-1", ("worker",)),)
    return Scenario(
        folder,
        folder.name,
        about=at["about"].text(),
        namespace=at["namespace"].text(folder.name),
        sources=tuple(
            {"repoURL": PLACE, "targetRevision": "main"} | source
            for source in sources or [Field(at.file, "sources", at["source"].value or {"path": "."}).map()]
        ),
        policy=at["syncPolicy"].map(),
        applications=at["applications"].texts(),
        steps=steps,
        views=tuple(_look(one.known("path", "columns")) for one in at["look"].each()),
        events=at["events"].texts(),
        nodes=nodes,
        machine_config=machine_config,
    )


def _step(at: Field) -> Step:
    say = at.needed("say", "a sentence that says what happens")
    ends = at["ends"].text(Ends.SUCCEEDED)
    if ends not in (Ends.SUCCEEDED, Ends.FAILED, Ends.RUNNING):
        allowed = f"{Ends.SUCCEEDED}, {Ends.FAILED}, or {Ends.RUNNING} to look in the middle"
        raise at["ends"].wrong(repr(ends), allowed)
    at["until"].texts()
    at["explain"].texts()
    return Step(
        say=say,
        change=at["change"].text(),
        ends=ends,
        moves=at["moves"].text(),
        acts=tuple(_act(one) for one in at["do"].each()),
        until=tuple(_until(one) for one in at["until"].each()),
        within=at["within"].duration(WITHIN),
        rests=at["rests"].duration(timedelta(0)),
        explain=tuple(Field(at.file, f"{at.where}.explain", one.value).target() for one in at["explain"].each()),
    )


def _act(at: Field) -> Act:
    at.known("node", "patch", "with", "delete")
    what = [key for key in ("node", "patch", "delete") if key in at.map()]
    if len(what) != 1 or ("with" in at.map()) != (what == ["patch"]):
        raise at.wrong(", ".join(at.map()) or "nothing", "one of node, delete, or patch and with")
    match what[0]:
        case "node":
            return AddNode(_node(at["node"]))
        case "delete":
            return Delete(at["delete"].target())
    return Patching(at["patch"].target(), at["with"].map())


def _until(at: Field) -> Until:
    target, space, condition = at.value.partition(" ")
    kind, equals, status = condition.strip().partition("=")
    if not space or not kind or (equals and status not in ("True", "False", "Unknown")):
        raise at.wrong(repr(at.value), "KIND/NAME CONDITION, or KIND/NAME CONDITION=False")
    return Until(Field(at.file, at.where, target).target(), kind, status or "True")


def _node(at: Field) -> NodeShape:
    name = at.known(*NODE).needed("name", "a name")
    for taint in at["taints"].texts():
        if taint.rpartition(":")[2] not in EFFECTS or not taint.rpartition(":")[0]:
            raise at["taints"].wrong(repr(taint), f"KEY[=VALUE]:EFFECT with {', '.join(EFFECTS)}")
    return NodeShape(
        name,
        at["roles"].texts(),
        at["labels"].pairs(),
        at["taints"].texts(),
        at["cpu"].text(CPU),
        at["memory"].text(MEMORY),
        at["zone"].text(),
        at["unschedulable"].flag(),
    )


def _look(at: Field) -> View:
    path = at["path"]
    if not path.text().startswith("/"):
        raise path.wrong(repr(path.value), "the path of a list: /api/v1/nodes")
    return View(path.text(), at["columns"].pairs())
