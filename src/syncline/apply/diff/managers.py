"""Ignores changes by trusted field managers (``managedFieldsManagers``).

Called first by the diff if both objects exist: a differing field that one of the managers owns on the live object is
removed from both sides. Pure. Rules: Argo CD ``util/argo/managedfields``.
"""

from __future__ import annotations

from syncline.apply.diff.model import DiffSettings
from syncline.apply.diff.normalize import trusted_managers
from syncline.kube.objects import Obj, gvk_of, meta
from syncline.kube.patching import fieldset
from syncline.kube.patching.typedvalues import compare, remove_items, type_errors


def without_trusted_changes(target: Obj, live: Obj, settings: DiffSettings) -> tuple[Obj, Obj]:
    """Return both objects without changes of the trusted managers; a kind without schema is merged by structure.
    Unchanged if one of them does not fit its schema."""
    trusted = trusted_managers(target, settings)
    entries = meta(live).get("managedFields")
    if not trusted or not isinstance(entries, list):
        return target, live
    schema = settings.schema_of(gvk_of(target))
    if type_errors(target, schema) or type_errors(live, schema):
        return target, live
    modified = compare(live, target, schema).modified
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("manager") not in trusted:
            continue
        owned = fieldset.intersection(owned_fields(entry), modified)
        if owned:
            live, target = (remove_items(one, owned, schema, nulls=True) for one in (live, target))
    return target, live


def owned_fields(entry: Obj) -> fieldset.FieldSet:
    """Return the fields of one entry of ``managedFields``; empty if invalid."""
    try:
        return fieldset.parse(entry.get("fieldsV1") or {})
    except ValueError:
        return {}
