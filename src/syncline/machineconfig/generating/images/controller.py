"""The controller that generates registry files from the cluster's image configuration."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, spec_differs
from syncline.control.plan import Plan
from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from syncline.kube.kinds.openshiftconfig import DIGEST_MIRRORS, IMAGE_CONFIG, SOURCE_POLICY, TAG_MIRRORS
from syncline.kube.objects import GVK, Obj, ObjectRef, name_of
from syncline.machineconfig.generating.images.plan import ImagesObserved, plan_images
from syncline.machineconfig.generating.runtime.mirrors import MirrorRules
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME
from syncline.machineconfig.render.rendering import Release

_RULES = (DIGEST_MIRRORS, TAG_MIRRORS, SOURCE_POLICY)
_CONTROLLER = ObjectRef(CONTROLLER_CONFIG.group, CONTROLLER_CONFIG.kind, "", CONTROLLER_CONFIG_NAME)
CLUSTER = ObjectRef(IMAGE_CONFIG.group, IMAGE_CONFIG.kind, "", "cluster")


def _plan(observed: ImagesObserved, now: datetime) -> Plan:
    return plan_images(observed)


def _of_config(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return _the_one(obj, cache) if name_of(obj).endswith("-generated-registries") else ()


def _the_one(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (CLUSTER,)


def image_controller(release: Release) -> Controller[ImagesObserved]:
    """Return the controller of kind Image of config.openshift.io."""

    def observe(cache: Snapshot, ref: ObjectRef) -> ImagesObserved | None:
        image, config = cache.get(ref), cache.get(_CONTROLLER)
        needed = (MACHINE_CONFIG, MACHINE_CONFIG_POOL)
        if ref != CLUSTER or image is None or config is None:
            return None
        if not all(cache.has_synced(kind.group_kind) for kind in needed):
            return None
        digest, tag, policies = (_objects(cache, kind) for kind in _RULES)
        return ImagesObserved(
            image=image,
            rules=MirrorRules(digest, tag, policies),
            controller_config=config,
            pools=tuple(cache.objects(MACHINE_CONFIG_POOL.group_kind)),
            configs={name_of(one): one for one in cache.objects(MACHINE_CONFIG.group_kind)},
            release=release,
        )

    return Controller(
        name="machine-config-images",
        kind=IMAGE_CONFIG.group_kind,
        watches=(
            Watch(MACHINE_CONFIG.group_kind, _of_config, spec_differs),
            *(Watch(kind.group_kind, _the_one, spec_differs) for kind in _RULES),
            Watch(MACHINE_CONFIG_POOL.group_kind, _the_one, spec_differs),
            Watch(CONTROLLER_CONFIG.group_kind, _the_one),
        ),
        observe=observe,
        plan=_plan,
    )


def _objects(cache: Snapshot, kind: GVK) -> tuple[Obj, ...]:
    return tuple(sorted(cache.objects(kind.group_kind), key=name_of))
