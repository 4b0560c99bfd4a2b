"""Strategies of all kinds: prepare, validate, and count the generation of an object to be stored.

The API's verbs call :class:`Strategy`; the kinds of this package derive from :class:`Kind`. ``prepare_*`` mutate the
request's object (the request owns it), ``validate_*`` only read. They do no I/O and read no other objects: checks of
quotas, service accounts and cluster addresses are admission. Source: Kubernetes ``registry/rest``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Protocol

import msgspec

from syncline.base.entropy import Entropy
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import invalid
from syncline.cluster.validation.engine.metadata import (
    NameCheck,
    common_update_causes,
    metadata_causes,
    metadata_update_causes,
)
from syncline.cluster.validation.engine.rules import Rule, nothing
from syncline.cluster.validation.pods.disabled import drop_disabled
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

IMMUTABLE = "field is immutable"


class Context(msgspec.Struct, frozen=True):
    """The user and time of a write, and the source of new ids."""

    now: datetime
    entropy: Entropy
    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Strategy(Protocol):
    """Strategy of one kind. Implemented by :class:`Kind` and by custom resources in the registry."""

    @property
    def has_status(self) -> bool: ...

    @property
    def has_generation(self) -> bool: ...

    @property
    def warns_of_status(self) -> bool: ...

    @property
    def grace_s(self) -> int:
        """Default grace period of a deletion in seconds; 0 deletes at once."""
        ...

    def convert(self, obj: Obj) -> None: ...

    def prepare_create(self, obj: Obj, ctx: Context) -> None: ...

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None: ...

    def validate_create(self, obj: Obj) -> list[FieldCause]: ...

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]: ...

    def warnings(self, new: Obj, old: Obj | None) -> list[str]: ...


class Kind:
    """The permissive default: validate only metadata.

    Class attributes configure a kind; kinds override methods that end in ``_causes``.
    """

    has_status: bool = False
    has_generation: bool = False
    grace_s: int = 0
    namespaced: bool = True
    name_check: ClassVar[NameCheck] = names.dns_subdomain
    rules: ClassVar[Rule] = nothing
    """Rules for everything but metadata."""
    status_rules: ClassVar[Rule] = nothing
    """Rules for a written status."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Fields (``spec.selector``) that an update may not change."""
    judged_again: ClassVar[bool] = False
    """Whether the checks of an update end with those of the content."""
    empty_status: ClassVar[Obj | None] = None
    """Status of a new object; None retains the sent one."""
    generation_follows: ClassVar[tuple[str, ...]] = ("spec",)
    """Top-level fields whose change increments the generation."""
    pod_spec: ClassVar[tuple[str, ...]] = ()
    """Path of the pod spec, if the kind has one."""
    status_keeps_metadata: ClassVar[bool] = False
    """Whether ``/status`` ignores changes of labels, annotations, finalizers and owners."""
    warns_of_status: bool = False
    """Whether writes of ``/status`` get warnings too."""
    revalidates: ClassVar[bool] = True
    """Whether an update also runs the checks of a create, as in most kinds."""

    def convert(self, obj: Obj) -> None:
        """Normalize a decoded object, before ownership of its fields is computed."""

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        if self.pod_spec:
            drop_disabled(dig(obj, *self.pod_spec))
        if self.has_status:
            if self.empty_status is None:
                obj.pop("status", None)
            else:
                obj["status"] = copy.deepcopy(self.empty_status)
        if self.has_generation:
            obj.setdefault("metadata", {})["generation"] = 1

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        """The main endpoint keeps the old status; ``/status`` changes only status and metadata."""
        if self.pod_spec:
            drop_disabled(dig(new, *self.pod_spec))
        if subresource == "status":
            _keep_all_but(new, old, "metadata", "status")
            for key in ("labels", "annotations", "finalizers", "ownerReferences") if self.status_keeps_metadata else ():
                _keep(new.setdefault("metadata", {}), old.get("metadata") or {}, key)
        elif not subresource and self.has_status:
            _keep(new, old, "status")
        if not subresource or subresource in ("scale", "resize", "ephemeralcontainers"):
            self.count_generation(new, old)
        else:
            _keep(new.setdefault("metadata", {}), old.get("metadata") or {}, "generation")

    def count_generation(self, new: Obj, old: Obj) -> None:
        """Increment the generation if a field that it follows has changed."""
        fresh, before = new.setdefault("metadata", {}), old.get("metadata") or {}
        _keep(fresh, before, "generation")
        if self.has_generation and self.changed(new, old):
            fresh["generation"] = int(before.get("generation") or 0) + 1

    def changed(self, new: Obj, old: Obj) -> bool:
        return any(new.get(part) != old.get(part) for part in self.generation_follows)

    def validate_create(self, obj: Obj) -> list[FieldCause]:
        return self.whole_causes(obj) or metadata_causes(obj, names.path_segment, namespaced=self.namespaced)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        causes = common_update_causes(new, old, namespaced=self.namespaced)
        if subresource == "status":
            again = metadata_update_causes(new, old) if causes else []
            return causes + again + self.status_causes(new, old)
        if self.revalidates:
            causes += self.whole_causes(new)
        return causes + self.update_causes(new, old)

    def whole_causes(self, obj: Obj) -> list[FieldCause]:
        """Validate metadata and content of one object."""
        return metadata_causes(obj, type(self).name_check, namespaced=self.namespaced) + self.content_causes(obj)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        """Apply :attr:`rules`; kinds with checks beyond rules override this."""
        return list(type(self).rules(obj, ""))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        """Validate what an update changes."""
        causes = metadata_update_causes(new, old)
        for path in self.fixed:
            fresh, before = (dig(obj, *path.split(".")) for obj in (new, old))
            if fresh != before:
                causes.append(invalid(path, fresh, IMMUTABLE))
        return causes + (self.content_causes(new) if self.judged_again else [])

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return list(type(self).status_rules(new.get("status") or {}, "status"))

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return []


def _keep(new: Any, old: Any, key: str) -> None:
    if old.get(key) is None:
        new.pop(key, None)
    else:
        new[key] = old[key]


def _keep_all_but(new: Obj, old: Obj, *own: str) -> None:
    for key in [key for key in new if key not in own]:
        del new[key]
    new.update({key: value for key, value in old.items() if key not in own})


def spec_of(obj: Obj) -> Obj:
    """Return ``spec``, or an empty object if it is missing or malformed."""
    value = dig(obj, "spec", default={})
    return value if isinstance(value, dict) else {}
