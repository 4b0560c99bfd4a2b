"""The context in which webhooks and policies judge a request, and the state of mutation rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.cluster.access.authz import Authorizer
from syncline.cluster.admission.dynamic.bindings import authorizers, kind_in, request_obj, shown_namespace
from syncline.cluster.admission.dynamic.calls import Asking
from syncline.cluster.admission.dynamic.matching import World
from syncline.cluster.admission.dynamic.subject import Subject
from syncline.cluster.resources.conversion import convert
from syncline.cluster.resources.registry import Resource
from syncline.kube.errors import InternalError
from syncline.kube.objects import GVK, Obj


@dataclass(frozen=True, slots=True)
class Judging:
    """``renew`` decodes a mutated value as an object of a kind, with defaults; it raises ApiError. ``remaining_s`` is
    the request's remaining time."""

    world: World
    authorizer: Authorizer
    asking: Asking
    warn: Callable[[str], None]
    annotate: Callable[[str, str], None]
    renew: Callable[[Any, GVK], Obj]
    remaining_s: Callable[[], float]

    def values(self, subject: Subject, resource: Resource, obj: Obj | None, old: Obj | None) -> dict[str, Any]:
        """Return the variables of expressions; params and namespaceObject are None."""
        return {
            "object": obj,
            "oldObject": old,
            "request": request_obj(subject, resource),
            "namespaceObject": None,
            "params": None,
            **authorizers(self.authorizer, subject),
        }

    def namespace_of(self, subject: Subject) -> Obj | None:
        """Return the object's namespace as expressions see it. Raises NotFound."""
        if not subject.namespace or subject.is_namespace:
            return None
        return shown_namespace(self.world.namespace(subject.namespace))


@dataclass(slots=True)
class Round:
    """Mutations run a second time if later ones changed the object (admission ``reinvocationContext``).

    ``called`` ran and may run again, ``due`` must run again. Names are uids of webhooks, or keys of policies.
    """

    number: int = 0
    changed: bool = False
    called: dict[str, set[str]] = field(default_factory=dict)
    due: dict[str, set[str]] = field(default_factory=dict)
    left: dict[str, Obj | None] = field(default_factory=dict)

    def begin(self, plugin: str, obj: Obj | None) -> None:
        if self.number and self.left.get(plugin) != obj:
            self.require(plugin)

    def skips(self, plugin: str, name: str) -> bool:
        return bool(self.number) and name not in self.due.get(plugin, ())

    def require(self, plugin: str) -> None:
        self.due.setdefault(plugin, set()).update(self.called.pop(plugin, ()))

    def note(self, plugin: str, name: str, *, changed: bool, again: bool) -> None:
        """Record that ``name`` ran. ``again``: it is reinvoked after later changes."""
        if changed:
            self.require(plugin)
            self.changed = True
        if again:
            self.called.setdefault(plugin, set()).add(name)


def seen_as(obj: Obj | None, subject: Subject, resource: Resource) -> Obj | None:
    """Return an object of the request in the version of ``resource``. Read-only."""
    return None if obj is None else convert(obj, kind_in(subject, resource))


def internal(why: str) -> InternalError:
    """Return ``Internal error occurred: <why>`` (``apierrors.NewInternalError``)."""
    causes: list[Mapping[str, str]] = [{"message": why}]
    return InternalError(f"Internal error occurred: {why}", details={"causes": causes})
