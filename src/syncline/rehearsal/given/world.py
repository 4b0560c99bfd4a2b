"""The world of a rehearsal, as a few lines of YAML: :class:`GivenWorld`, read by :func:`read_world`.

``docs/rehearsal.md`` documents the file. The text is kept, so that a cure can be shown as a change of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from syncline.assembly.rights import Rights
from syncline.kube.kinds.argoproj import GROUP as ARGO
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import YamlError, load
from syncline.rehearsal.fields import Field
from syncline.rehearsal.given.durations import GUESSES, Duration, drawn, stated
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.given.playbooks import is_ansible_config
from syncline.rehearsal.given.state import WorldState
from syncline.rehearsal.reading import EFFECTS
from syncline.rehearsal.scenario import CPU, MEMORY, NodeShape, ScenarioError

WORLD = ("machineConfig", "nodes", "objects", "durations", "loadBalancers", "standIns", "rights", "namespaces")
GROUP = ("name", "count", "roles", "labels", "taints", "cpu", "memory", "zone")
MAX_NODES = 2_000
MAX_COUNT = 1_000
MAX_WORLD_BYTES = 1024 * 1024
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?")
MACHINE_CONFIGS = "machineconfiguration.openshift.io/"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``count`` machines alike, named ``NAME-1`` and so on; a group without a count is one machine called NAME."""

    shape: NodeShape
    count: int | None = None

    def nodes(self) -> tuple[NodeShape, ...]:
        if self.count is None:
            return (self.shape,)
        shape = self.shape
        return tuple(
            NodeShape(
                f"{shape.name}-{number}",
                shape.roles,
                shape.labels,
                shape.taints,
                shape.cpu,
                shape.memory,
                shape.zone,
            )
            for number in range(1, self.count + 1)
        )


@dataclass(frozen=True)
class GivenWorld:
    """The cluster before the rehearsal. ``text`` is its file, ``name`` the file's; ``assumed`` says in sentences what
    stands in no file."""

    name: str
    text: str
    groups: tuple[NodeGroup, ...]
    machine_config: bool = False
    objects: Files = field(default_factory=lambda: Files({}))
    """What an administrator has installed before."""
    durations: Mapping[str, Duration] = field(default_factory=lambda: GUESSES)
    assumed: tuple[str, ...] = ()
    applications: tuple[Obj, ...] = ()
    """Applications that are there already, for a repository that holds none of its own."""
    lenient: bool = False
    """Objects that the rehearsed cluster refuses are left out and named; else they are an error."""
    catalogs: Mapping[str, Path] = field(default_factory=dict)
    """Folders with the catalogues of operators, by CatalogSource; a pattern needs them."""
    load_balancers: bool = True
    """Whether Ingresses and Services of type LoadBalancer get addresses."""
    stand_ins: bool = True
    """Whether objects of controllers that are not here become healthy, as these would make them."""
    invented: bool = False
    """Whether it is no one's cluster: storage classes and Secrets that are named in it are supposed to be there."""
    folder: Path | None = None
    """The folder of its file; None: it has none."""
    state: WorldState | None = None
    """The cluster as it is, in the middle of whatever it does; then groups and objects are empty. None: a new one."""
    repositories: Mapping[str, Files] = field(default_factory=dict)
    """Copies of further repositories by address, read instead of what is there."""
    rights: Rights = Rights.CLUSTER
    """What its GitOps controllers may do."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Namespaces that an administrator has made, with their labels."""

    def nodes(self) -> tuple[NodeShape, ...]:
        return tuple(node for group in self.groups for node in group.nodes())


def read_world(file: Path) -> GivenWorld:
    """Raises ScenarioError with file, key, value and allowed values."""
    if not file.is_file():
        raise ScenarioError(f"{file}: there is no such file; --world takes a YAML file", usage=True)
    if file.stat().st_size > MAX_WORLD_BYTES:
        raise ScenarioError(
            f"{file}: is larger than {MAX_WORLD_BYTES} bytes; keep objects in files of their own", usage=True
        )
    return parse_world(file.read_text("utf-8", "replace"), file)


def parse_world(text: str, file: Path, objects: Files | None = None) -> GivenWorld:
    """As :func:`read_world`, of a text. ``objects``: those of the world, instead of reading them beside the file."""
    try:
        value = load(text.encode(), file=str(file))
    except YamlError as error:
        raise ScenarioError(str(error), usage=True) from error
    return world_at(Field(file, "", value).known(*WORLD), text, objects)


def world_at(at: Field, text: str, objects: Files | None = None) -> GivenWorld:
    """As :func:`parse_world`, of a mapping in a file whose keys the caller has checked."""
    world = GivenWorld(
        at.file.name,
        text,
        tuple(_group(one.known(*GROUP)) for one in at["nodes"].each()),
        machine_config=at["machineConfig"].flag(),
        objects=objects_at(at["objects"]) if objects is None else objects,
        durations=_durations(at["durations"]),
        load_balancers=at["loadBalancers"].value is None or at["loadBalancers"].flag(),
        stand_ins=at["standIns"].value is None or at["standIns"].flag(),
        folder=at.file.parent,
        rights=_rights(at["rights"]),
        namespaces={name: dict(at["namespaces"][name].pairs()) for name in at["namespaces"].map()},
    )
    names = [node.name for node in world.nodes()]
    if not names or len(names) > MAX_NODES:
        raise at["nodes"].wrong(f"{len(names)} nodes", f"1 to {MAX_NODES} nodes: [{{name: worker, count: 3}}]")
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise at["nodes"].wrong(f"the node {twice} twice", "each name once")
    if world.machine_config and not any(node.roles for node in world.nodes()):
        raise at["nodes"].wrong("no node with a role", "roles: [worker] on the nodes that pools update")
    return world


def _group(at: Field) -> NodeGroup:
    name = at.needed("name", "a name, such as worker")
    if not _NAME.fullmatch(name):
        raise at["name"].wrong(repr(name), "lower case letters, digits, - and .")
    count = at["count"].value
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MAX_COUNT):
        raise at["count"].wrong(repr(count), f"a number from 1 to {MAX_COUNT}")
    for taint in at["taints"].texts():
        if taint.rpartition(":")[2] not in EFFECTS or not taint.rpartition(":")[0]:
            raise at["taints"].wrong(repr(taint), f"KEY[=VALUE]:EFFECT with {', '.join(EFFECTS)}")
    shape = NodeShape(
        name,
        at["roles"].texts(),
        at["labels"].pairs(),
        at["taints"].texts(),
        at["cpu"].text(CPU),
        at["memory"].text(MEMORY),
        at["zone"].text(),
    )
    return NodeGroup(shape, count)


def _rights(at: Field) -> Rights:
    allowed = tuple(each.value for each in Rights)
    if at.text(Rights.CLUSTER) not in allowed:
        raise at.wrong(repr(at.value), ", ".join(allowed))
    return Rights(at.text(Rights.CLUSTER))


def objects_at(at: Field) -> Files:
    """Read the files and folders that the world names; none outside its own folder."""
    content: dict[str, bytes] = {}
    for one in at.texts():
        place = (at.file.parent / one).resolve()
        if not place.is_relative_to(at.file.parent.resolve()):
            raise at.wrong(repr(one), "files and folders beside the world's file or below")
        found = read_files(place)
        for path, data in found.content.items():
            content[one if place.is_file() else f"{one.rstrip('/')}/{path}"] = data
    return Files(content)


def _durations(at: Field) -> Mapping[str, Duration]:
    at.known(*GUESSES)
    found = dict(GUESSES)
    for name in at.map():
        one = at[name]
        if isinstance(one.value, dict):
            one.known("from", "to")
            least, most = (one[key].duration(timedelta(0)).total_seconds() for key in ("from", "to"))
            if not 0 < least <= most:
                raise one.wrong(repr(one.value), "{from: 2m, to: 5m}, the shorter one first")
            found[name] = drawn(name, least, most)
        elif one.value is not None:
            found[name] = stated(name, one.duration(timedelta(0)).total_seconds())
    return found


def world_of_state(name: str, state: WorldState, durations: Mapping[str, Duration], said: str) -> GivenWorld:
    """Return the world that goes on from a state. ``said``: where the state is from, in a sentence."""
    apps = tuple(obj for obj in state.objects if str(obj.get("apiVersion")).startswith(f"{ARGO}/"))
    pools = state.machine_config
    return GivenWorld(name, "", (), pools, durations=durations, assumed=(said,), applications=apps, state=state)


# -- without a file ---------------------------------------------------------------------------------------------------

PLAIN = """\
nodes:
- name: node
  count: 3
"""
WITH_POOLS = """\
machineConfig: true
nodes:
- name: master
  count: 3
  roles: [master]
  taints: ["node-role.kubernetes.io/master:NoSchedule"]
- name: worker
  count: 3
  roles: [worker]
"""


def default_world(files: Files) -> GivenWorld:
    """Return the world that is assumed where none is given: with machine configs if the repository has any."""
    pools = any(_of_machines(obj) for _, obj in files.objects()) or any(path.endswith(".bu") for path in files.content)
    world = parse_world(WITH_POOLS if pools else PLAIN, Path("world.yaml"), Files({}))
    shape = "3 masters that take no work, 3 workers" if pools else "3 nodes"
    said = f"no --world is given: a new cluster with {shape}, each with {CPU} CPUs and {MEMORY}"
    return GivenWorld(world.name, world.text, world.groups, world.machine_config, assumed=(said,), invented=True)


def _of_machines(obj: Obj) -> bool:
    return str(obj.get("apiVersion") or "").startswith(MACHINE_CONFIGS) or is_ansible_config(obj)
