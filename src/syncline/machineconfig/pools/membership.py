"""Which pool a node is in; pure.

A master stays in ``master`` whatever else matches, one custom pool beats ``worker``, and a node of two custom pools is
in no one's (source: Machine Config Operator ``pkg/helpers``, reference machine-config 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.selectors import Selector, SelectorError, label_selector_from
from syncline.machineconfig.names import MASTER, NOT_YET_SET, WORKER
from syncline.machineconfig.pools.nodestate import Nodes, ObservedNode

__all__ = [
    "MembershipError",
    "Pools",
    "belonging",
    "is_windows",
    "members",
    "node_selector",
    "pool_of_machine_config_node",
    "primary_pool",
    "selects_all",
]

OS_LABEL = "kubernetes.io/os"


class MembershipError(ValueError):
    """A node that cannot be put into a pool; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """``pools`` in order, the one that owns the node first; empty: unmanaged. ``alert``: a custom pool is ignored on a
    master (metric ``mcc_pool_alert``)."""

    pools: tuple[Obj, ...] = ()
    alert: bool = False

    @property
    def primary(self) -> Obj | None:
        return self.pools[0] if self.pools else None


def is_windows(node: Obj) -> bool:
    return labels_of(node).get(OS_LABEL) == "windows"


def node_selector(pool: Obj) -> Selector:
    """Raises :class:`MembershipError` for a selector that cannot be read."""
    return _selector(_selector_text(pool))


def _selector_text(pool: Obj) -> bytes:
    return _encode(dig(pool, "spec", "nodeSelector"))


_encode = msgspec.json.Encoder(order="sorted").encode


@lru_cache(maxsize=256)
def _selector(text: bytes) -> Selector:
    """A pool's status is written all the time, its selector hardly ever."""
    try:
        return label_selector_from(msgspec.json.decode(text))
    except SelectorError as error:
        raise MembershipError(f"invalid label selector: {error}") from error


def selects_all(pool: Obj) -> bool:
    """``nodeSelector: {}``: refused with an Event instead of taking every node."""
    return bool(dig(pool, "spec", "nodeSelector") == {})


class Pools:
    """All pools of a cluster with their selectors read once, for those that ask about many nodes."""

    def __init__(self, pools: Iterable[Obj]) -> None:
        self._pools: list[tuple[Obj, Selector]] = []
        self._problem: MembershipError | None = None
        for pool in sorted(pools, key=name_of):
            try:
                self._pools.append((pool, node_selector(pool)))
            except MembershipError as error:
                self._problem = self._problem or error

    def belonging(self, node: Obj) -> Belonging:
        """Raises :class:`MembershipError`: a bad selector of any pool, or several custom pools."""
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
    """Of one node. Raises as :meth:`Pools.belonging`."""
    return Pools(pools).belonging(node)


def primary_pool(node: Obj, pools: Iterable[Obj]) -> Obj | None:
    """The pool that owns the node. Raises as :func:`belonging`."""
    return belonging(node, pools).primary


def pool_of_machine_config_node(node: Obj, pools: Iterable[Obj]) -> str:
    """The name that the node's MachineConfigNode carries. Raises as :func:`belonging`."""
    found = primary_pool(node, pools)
    return name_of(found) if found is not None else NOT_YET_SET


def members(pool: Obj, nodes: Iterable[Obj], pools: Sequence[Obj]) -> Nodes:
    """The nodes that the pool owns, in the order given; a node that cannot be determined is no one's.

    Raises :class:`MembershipError` if the pool's own selector is bad.
    """
    node_selector(pool)
    known, name = Pools(pools), name_of(pool)
    key = _one_key(tuple(sorted((name_of(each), _selector_text(each)) for each in pools)))
    return Nodes([node for node in nodes if _home_of(node, known, key) == name])


@lru_cache(maxsize=16)
def _one_key(selectors: tuple[tuple[str, bytes], ...]) -> object:
    """The very same for the same selectors, so that it is compared by identity for each of thousands of nodes."""
    return object()


def _home_of(node: Obj, pools: Pools, key: object) -> str:
    """As :func:`_owner`; of a node that was read once it is looked up once for the same selectors."""
    if type(node) is not ObservedNode:
        return _owner(node, pools)
    if node.asked is not key:
        node.asked, node.home = key, _owner(node, pools)
    return node.home


def _owner(node: Obj, pools: Pools) -> str:
    """The name of the pool that owns a node; empty: none does, or it cannot be determined."""
    try:
        owner = pools.belonging(node).primary
    except MembershipError:
        return ""  # ``explain`` and the node's record say so
    return name_of(owner) if owner is not None else ""
