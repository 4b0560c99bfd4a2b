"""The controller of Klusterlets, on the cluster that they are on."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Final

from syncline.base.secret import Secret
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.informer import Scope
from syncline.fleet.spoke.klusterlet.model import (
    BOOTSTRAP,
    KLUSTERLETS,
    NAMESPACES,
    SECRETS,
    Agents,
    namespace_for,
)
from syncline.fleet.spoke.klusterlet.plan import Observed, plan_klusterlet
from syncline.kube.kinds.manifestworks import APPLIED_WORK
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    is_terminating,
    meta,
    name_of,
    namespace_of,
    ref_of,
)

KLUSTERLET_CONTROLLER: Final = "klusterlet"
APPLIED: Final = APPLIED_WORK.group_kind
SCOPES: Final[dict[GroupKind, Scope | None]] = {SECRETS: Scope(fields=f"metadata.name={BOOTSTRAP}")}
"""Of the Secrets of a cluster only those of this name are read."""

_klusterlet_differs = differ(lambda one: one.get("spec"), is_terminating, finalizers)


def klusterlet_controller(agents: Agents) -> Controller[Observed]:
    """Return the controller; ``agents`` runs what it asks for."""
    return Controller(
        name=KLUSTERLET_CONTROLLER,
        kind=KLUSTERLETS,
        predicate=_klusterlet_differs,
        observe=_observe(agents),
        plan=plan_klusterlet,
        watches=(
            Watch(SECRETS, _in_namespace(namespace_of), differ(lambda one: one.get("data"))),
            Watch(NAMESPACES, _in_namespace(name_of), differ(is_terminating)),
        ),
        reads=(APPLIED,),
    )


def _observe(agents: Agents) -> Callable[[Snapshot, ObjectRef], Observed | None]:
    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        klusterlet = cache.get(ref)
        if klusterlet is None:
            return None
        bootstrap, problem = _bootstrap(cache, namespace_for(klusterlet))
        others = [one for one in cache.objects(KLUSTERLETS) if meta(one).get("uid") != meta(klusterlet).get("uid")]
        return Observed(
            klusterlet,
            bootstrap,
            problem,
            frozenset(name_of(one) for one in cache.objects(NAMESPACES)),
            agents.state(ref.name),
            tuple(cache.objects(APPLIED)) if is_terminating(klusterlet) else (),
            not others,
            cache.unread(ObjectRef(*APPLIED, "", "")),
        )

    return observe


def _bootstrap(cache: Snapshot, namespace: str) -> tuple[Secret | None, str]:
    """Return the kubeconfig of the bootstrap Secret, or why there is none."""
    ref = ObjectRef(*SECRETS, namespace, BOOTSTRAP)
    found = cache.get(ref)
    if found is None:
        return None, cache.unread(ref) or f'secrets "{BOOTSTRAP}" not found'
    try:
        text = base64.b64decode(str(dig(found, "data", "kubeconfig") or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return None, "its kubeconfig is not text in base64"
    return (Secret(text), "") if text else (None, "it has no kubeconfig")


def _in_namespace(of: Callable[[Obj], str]) -> Callable[[Obj, Snapshot], Iterable[ObjectRef]]:
    def keys(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        there = of(obj)
        return (ref_of(one) for one in cache.objects(KLUSTERLETS) if namespace_for(one) == there)

    return keys
