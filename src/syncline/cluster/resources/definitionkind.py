"""The strategy of CustomResourceDefinitions, around ``kube/schema/custom/crd.py``.

The registry uses it like the strategy of any built-in kind.
"""

from __future__ import annotations

from syncline.cluster.validation.engine.base import Context, Kind
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.schema.custom.crd import default_crd, prepare_crd, stored_versions, validate_crd, validate_crd_update


class DefinitionKind(Kind):
    """Strategy of definitions: the writer owns defaults; status is derived from the spec."""

    has_status = True
    has_generation = True
    namespaced = False

    def convert(self, obj: Obj) -> None:
        if "spec" in obj:
            _become(obj, default_crd(obj))

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        _become(obj, prepare_crd(default_crd(obj), None))

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        if subresource == "status":
            super().prepare_update(new, old, ctx, subresource)
            status = dict(new.get("status") or {})
            if not status.get("storedVersions"):
                status["storedVersions"] = stored_versions(new)
            new["status"] = status
            return
        _become(new, prepare_crd(default_crd(new), old))

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return validate_crd(obj)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        if subresource == "status":
            return super().validate_update(new, old, subresource)
        return [*super().update_causes(new, old), *validate_crd_update(new, old)]


def _become(obj: Obj, other: Obj) -> None:
    """Replace the content of ``obj`` by that of ``other``; the request owns ``obj``."""
    content = dict(other)
    obj.clear()
    obj.update(content)
