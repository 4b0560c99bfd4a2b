"""Determines the pool of a node; pure. Entry points: :class:`Pools`, :func:`members`.

A master stays in ``master`` whatever else matches, one custom pool takes precedence over ``worker``, and a node of two
custom pools belongs to none (source: Machine Config Operator ``pkg/helpers``, reference machine-config 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of
from syncline.kube.selectors import Selector, SelectorError, label_selector_from
from syncline.machineconfig.names import CURRENT, MASTER, NOT_YET_SET, WORKER
from syncline.machineconfig.pools.nodestate import Nodes, ObservedNode

OS_LABEL = "kubernetes.io/os"


class MembershipError(ValueError):
    """The node's pool cannot be determined; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """A node's pools. ``pools`` in order, the owner first; empty: unmanaged. ``alert``: a custom pool is ignored on a
    master (metric ``mcc_pool_alert``)."""

    pools: tuple[Obj, ...] = ()
    alert: bool = False

    @property
    def primary(self) -> Obj | None:
        return self.pools[0] if self.pools else None


def is_windows(node: Obj) -> bool:
    return labels_of(node).get(OS_LABEL) == "windows"


def is_managed(node: Obj) -> bool:
    """The agent has run there at least once."""
    return not is_windows(node) and bool(annotations_of(node).get(CURRENT))


def node_selector(pool: Obj) -> Selector:
    """Return the parsed node selector. Raises :class:`MembershipError` if it is invalid."""
    return _selector(_selector_text(pool))


def _selector_text(pool: Obj) -> bytes:
    return _encode(dig(pool, "spec", "nodeSelector"))


_encode = msgspec.json.Encoder(order="sorted").encode


@lru_cache(maxsize=256)
def _selector(text: bytes) -> Selector:
    """Return the selector, cached: a pool's status changes often, its selector hardly ever."""
    try:
        return label_selector_from(msgspec.json.decode(text))
    except SelectorError as error:
        raise MembershipError(f"invalid label selector: {error}") from error


def selects_all(pool: Obj) -> bool:
    """Return whether the selector is ``{}``, which is rejected with an Event."""
    return bool(dig(pool, "spec", "nodeSelector") == {})


class Pools:
    """All pools of a cluster with parsed selectors, to look up many nodes."""

    def __init__(self, pools: Iterable[Obj]) -> None:
        self._pools: list[tuple[Obj, Selector]] = []
        self._problem: MembershipError | None = None
        for pool in sorted(pools, key=name_of):
            try:
                self._pools.append((pool, node_selector(pool)))
            except MembershipError as error:
                self._problem = self._problem or error

    def belonging(self, node: Obj) -> Belonging:
        """Return a node's pools. Raises :class:`MembershipError` for any invalid selector, or several custom pools."""
        if is_windows(node):
            return Belonging()
        if self._problem is not None:
            raise self._problem
        labels = labels_of(node)
        found = [pool for pool, selector in self._pools if not selector.empty and selector.matches(labels)]
        if len(found) <= 1:
            return Belonging(tuple(found))
        by_role = {name_of(pool): pool for pool in found if name_of(pool) in (MASTER, WORKER)}
        custom = [pool for pool in found if name_of(pool) not in by_role]
        if len(custom) > 1:
            text = f"node {name_of(node)} belongs to {len(custom)} custom roles, cannot proceed with this Node"
            raise MembershipError(text)
        master, worker = by_role.get(MASTER), by_role.get(WORKER)
        if not custom:
            only = master or worker
            return Belonging((only,) if only is not None else ())
        owner = master if master is not None else custom[0]
        return Belonging((owner, worker) if worker is not None else (owner,), alert=master is not None)


def belonging(node: Obj, pools: Iterable[Obj]) -> Belonging:
    """Return the pools of one node. Raises as :meth:`Pools.belonging`."""
    return Pools(pools).belonging(node)


def primary_pool(node: Obj, pools: Iterable[Obj]) -> Obj | None:
    """Return the pool that owns the node. Raises as :func:`belonging`."""
    return belonging(node, pools).primary


def pool_of_machine_config_node(node: Obj, pools: Iterable[Obj]) -> str:
    """Return the pool name for the node's MachineConfigNode. Raises as :func:`belonging`."""
    found = primary_pool(node, pools)
    return name_of(found) if found is not None else NOT_YET_SET


def members(pool: Obj, nodes: Iterable[Obj], pools: Sequence[Obj]) -> Nodes:
    """Return the nodes that the pool owns, in the given order, without nodes whose pool cannot be determined.

    Raises :class:`MembershipError` if the pool's own selector is invalid.
    """
    node_selector(pool)
    known, name = Pools(pools), name_of(pool)
    key = _one_key(tuple(sorted((name_of(each), _selector_text(each)) for each in pools)))
    return Nodes([node for node in nodes if _home_of(node, known, key) == name])


@lru_cache(maxsize=16)
def _one_key(selectors: tuple[tuple[str, bytes], ...]) -> object:
    """Return one object per set of selectors, so that comparison by identity suffices for thousands of nodes."""
    return object()


def _home_of(node: Obj, pools: Pools, key: object) -> str:
    """Return the same as :func:`_owner`, cached in the node for the same selectors."""
    if type(node) is not ObservedNode:
        return _owner(node, pools)
    if node.asked is not key:
        node.asked, node.home = key, _owner(node, pools)
    return node.home


def _owner(node: Obj, pools: Pools) -> str:
    """Return the name of the pool that owns a node; empty if there is none, or it cannot be determined."""
    try:
        owner = pools.belonging(node).primary
    except MembershipError:
        return ""  # ``explain`` and the node's record report it
    return name_of(owner) if owner is not None else ""
