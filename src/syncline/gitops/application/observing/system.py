"""The installation's current settings, and the index that depends on them.

``argocd-cm`` and ``argocd-cmd-params-cm`` are parsed once per version; all users share the frozen result.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncline.argo.parameters import PARAMETERS_MAP, parse_parameters
from syncline.argo.settings import CONFIG_MAP, System, parse_system
from syncline.argo.tracking import Tracking
from syncline.control.cache import Snapshot
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import Obj, ObjectRef, dig, resource_version


class InstanceIndex:
    """Index function: the application in an object's tracking data. ``version`` counts changes of the tracking rule."""

    of_metadata = True

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self.version = 0

    def use(self, tracking: Tracking) -> None:
        if tracking != self.tracking:
            self.tracking = tracking
            self.version += 1

    def __eq__(self, other: object) -> bool:
        """Return whether both give the same values now."""
        return isinstance(other, InstanceIndex) and other.tracking == self.tracking

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, obj: Obj) -> Iterable[str]:
        name = self.tracking.app_name(obj)
        return (name,) if name else ()


class SystemCache:
    """The cache of settings, held by the controller; ``instances`` is its index function."""

    def __init__(self, settings: AppSettings) -> None:
        self._settings = settings
        self._version: tuple[str | None, ...] = ()
        self._current = System()
        self.instances = InstanceIndex(settings.tracking)

    def of(self, cache: Snapshot) -> System:
        named = (CONFIG_MAP, PARAMETERS_MAP)
        found = [cache.get(ObjectRef("", "ConfigMap", self._settings.control_namespace, name)) for name in named]
        version = tuple(None if one is None else resource_version(one) for one in found)
        if version != self._version:
            self._version = version
            data, parameters = (dig(one, "data", default={}) or {} for one in found)
            system = parse_system(data)
            self._current = System(system, parse_parameters(parameters))
            self.instances.use(system.tracking or self._settings.tracking)
        return self._current
