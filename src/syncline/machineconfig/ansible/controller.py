"""The controller of AnsibleConfigs: binds its planner to repositories, pools, MachineConfigs and nodes."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, labels_of, meta, name_of, ref_of
from syncline.machineconfig.ansible.journal import REPORT, reported
from syncline.machineconfig.ansible.plan import OUTCOME, AnsibleObserved, plan_ansible, wanted_of
from syncline.machineconfig.ansible.reading import PlaybookStore
from syncline.machineconfig.names import MACHINE_CONFIG, POOL
from syncline.machineconfig.pools.membership import MembershipError, members
from syncline.machineconfig.render.rendering import Release

ANSIBLE = "ansible-config"
NODE = GroupKind("", "Node")
KIND = ANSIBLE_CONFIG.group_kind


def ansible_controller(store: PlaybookStore, release: Release) -> Controller[AnsibleObserved]:
    """Return the controller of kind AnsibleConfig."""

    def observe(cache: Snapshot, ref: ObjectRef) -> AnsibleObserved | None:
        config = cache.get(ref)
        if config is None or not all(cache.has_synced(kind) for kind in (MACHINE_CONFIG, POOL, NODE)):
            return None
        pool = cache.get(ObjectRef(*POOL, "", str(dig(config, "spec", "pool") or "")))
        wanted = wanted_of(config)
        return AnsibleObserved(
            config,
            release,
            pool,
            {name_of(one): one for one in cache.owned(str(meta(config).get("uid") or ""), MACHINE_CONFIG)},
            _nodes(cache, ref.name, pool),
            store.get(wanted),
            store.is_reading(wanted),
        )

    return Controller(
        name=ANSIBLE,
        kind=KIND,
        predicate=differ(lambda one: meta(one).get("generation"), lambda one: annotations_of(one).get(OUTCOME)),
        watches=(
            Watch(POOL, _every_key, spec_differs),
            Watch(MACHINE_CONFIG, _owner, spec_differs),
            Watch(NODE, _of_node, differ(lambda node: annotations_of(node).get(REPORT), labels_of), gather_s=2.0),
        ),
        observe=observe,
        plan=plan_ansible,
    )


def _nodes(cache: Snapshot, name: str, pool: Obj | None) -> list[Obj]:
    """Return the nodes of the pool, and those of other pools that report the AnsibleConfig, by name."""
    nodes = cache.objects(NODE)
    try:
        mine = {name_of(node) for node in members(pool, nodes, cache.objects(POOL))} if pool is not None else set()
    except MembershipError:
        mine = set()
    marked = f'"{name}"'
    found = [node for node in nodes if name_of(node) in mine or marked in annotations_of(node).get(REPORT, "")]
    return sorted(found, key=name_of)


def _every_key(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(KIND))


def _owner(config: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    owners = meta(config).get("ownerReferences") or ()
    return (ObjectRef(*KIND, "", str(one.get("name"))) for one in owners if one.get("kind") == KIND.kind)


def _of_node(node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    report = annotations_of(node).get(REPORT, "")
    mine = reported(report) if report else {}
    return (ref for ref in _every_key(node, cache) if ref.name in mine)
