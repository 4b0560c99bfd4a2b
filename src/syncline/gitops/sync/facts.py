"""Attributes of one object that a sync needs, computed once.

Computed with each pair of manifest and live object (``model.py``) and with each hook, and kept as long as they are, so
that a reconcile of many waves computes only what changed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncline.apply.annotations import HookType, hook_types, is_hook, wave
from syncline.apply.definition import defined_kind
from syncline.kube.objects import GVK, Obj, ObjectRef, annotations_of, gvk_of, ref_of


@dataclass(frozen=True, slots=True)
class Facts:
    """Attributes of a manifest, or of a live object without one."""

    obj: Obj = field(repr=False)
    gvk: GVK
    ref: ObjectRef
    annotations: Mapping[str, str] = field(repr=False)
    wave: int
    is_hook: bool
    hook_types: tuple[HookType, ...]
    defines: tuple[str, str] | None
    """Group and kind that it defines, if it is a CRD."""

    @classmethod
    def of(cls, obj: Obj) -> Facts:
        types = tuple(hook_types(obj))
        return cls(
            obj, gvk_of(obj), ref_of(obj), annotations_of(obj), wave(obj), is_hook(obj), types, defined_kind(obj)
        )

    @property
    def is_skipped(self) -> bool:
        """Return whether ``Skip`` is the only known hook type: the object is not applied, pruned or compared."""
        return self.hook_types == (HookType.SKIP,)

    @property
    def is_ignored(self) -> bool:
        """Return whether it is a hook without a known type: it is dropped."""
        return self.is_hook and not self.hook_types

    @property
    def makes_namespace(self) -> bool:
        return self.gvk.kind == "Namespace" and not self.gvk.group
