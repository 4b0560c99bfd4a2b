"""The controller of Patterns: connects the plan with the cache and with who reads repositories; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.operatorlifecycle import OPERATOR_GROUP, SUBSCRIPTION
from syncline.kube.kinds.validatedpatterns import (
    ARGO_CD,
    CLUSTER_INGRESS,
    CLUSTER_VERSION,
    CONSOLE_LINK,
    INFRASTRUCTURE,
)
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, labels_of, meta, name_of, ref_of
from syncline.patterns.installing.config import CONFIG_MAP
from syncline.patterns.installing.observe import (
    BUNDLE,
    CONFIG_MAPS,
    COPY,
    HUBS,
    NAMESPACES,
    PATTERNS,
    SECRETS,
    TRACKING,
    PatternObserved,
    observe_pattern,
)
from syncline.patterns.installing.origin import SECRET as GIT_SECRET
from syncline.patterns.installing.pattern import LABEL
from syncline.patterns.installing.plan import plan_pattern
from syncline.patterns.installing.reading import CheckoutStore

PATTERN_CONTROLLER: Final = "pattern"
_KINDS: Final = (SUBSCRIPTION, OPERATOR_GROUP, ARGO_CD, CONSOLE_LINK, CLUSTER_VERSION, INFRASTRUCTURE, CLUSTER_INGRESS)


def pattern_controller(
    store: CheckoutStore, namespaces: frozenset[str], draw: Callable[[], str]
) -> Controller[PatternObserved]:
    """Return the controller. ``namespaces``: where Patterns are acted on; ``draw`` returns a new password."""

    def named(*names: str) -> Watch:
        return Watch(CONFIG_MAPS, lambda obj, cache: _all(obj, cache) if name_of(obj) in names else ())

    return Controller(
        name=PATTERN_CONTROLLER,
        kind=PATTERNS,
        observe=lambda cache, ref: observe_pattern(cache, ref, store, namespaces, draw),
        plan=plan_pattern,
        predicate=differ(
            lambda one: meta(one).get("generation"),
            annotations_of,
            lambda one: meta(one).get("deletionTimestamp"),
            lambda one: meta(one).get("finalizers"),
            lambda one: dig(one, "status", "deletionPhase"),
        ),
        watches=(
            named(CONFIG_MAP, BUNDLE),
            Watch(NAMESPACES, _all, differ()),
            Watch(SECRETS, lambda obj, cache: _of_secret(obj, cache), differ(lambda one: one.get("data"))),
            Watch(APPLICATION.group_kind, _of_application),
            *(Watch(kind.group_kind, _all, differ(lambda one: one.get("spec"))) for kind in _KINDS),
        ),
        reads=(HUBS, MANAGED_CLUSTER.group_kind),
    )


def _all(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.objects(PATTERNS)]


def _of_application(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    ours = LABEL in labels_of(obj) or TRACKING in annotations_of(obj)
    return _all(obj, cache) if ours else ()


def _of_secret(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for one in cache.objects(PATTERNS):
        named = dig(one, "spec", "gitSpec", "tokenSecret")
        if name_of(obj) in (COPY, GIT_SECRET) or (named and name_of(obj) == named):
            yield ref_of(one)
