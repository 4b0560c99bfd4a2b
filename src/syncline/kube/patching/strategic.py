"""Strategic merge patches: merge patches that know which lists have keys.

Called by the server's PATCH for built-in kinds, by kustomize and by the differ. A document, a patch and the kind's
:class:`~syncline.kube.schema.model.Schema` come in, a new document leaves; untouched parts are shared, inputs stay as
they were. The rules and the order of list elements are those of apimachinery's ``strategicpatch``.

Directives: ``$patch: replace|delete`` in a map or a list element, ``$retainKeys`` for unions,
``$setElementOrder/<list>`` and ``$deleteFromPrimitiveList/<list>`` beside the list they speak of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syncline.kube.errors import ApiError, BadRequest
from syncline.kube.objects import Obj
from syncline.kube.patching.patches import check_depth, same_json
from syncline.kube.schema.model import Schema

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
ELEMENT_ORDER = "$setElementOrder/"
DELETE_FROM_LIST = "$deleteFromPrimitiveList/"


def strategic_merge_patch(doc: Obj, patch: Obj, schema: Schema | None) -> Obj:
    """Apply ``patch``; without a schema lists are replaced and maps merged.

    Raises BadRequest for malformed directives and ApiError (500, as the API server answers) where a list element
    lacks its merge key or a directive is unknown.
    """
    check_depth(patch)
    return _merge_map(doc, patch, schema)


def strategy_of(schema: Schema | None) -> tuple[str, bool]:
    """Return ``merge``, ``replace`` or empty, and True if it includes ``retainKeys``."""
    if schema is None or not schema.patch_strategy:
        return "", False
    parts = schema.patch_strategy.split(",")
    return next((part for part in parts if part != "retainKeys"), ""), "retainKeys" in parts


def _merge_map(doc: Obj | None, patch: Obj, schema: Schema | None) -> Obj:
    if PATCH in patch:
        return _directed_map(patch)
    made = _retained(doc or {}, patch)
    ordered = {key.removeprefix(ELEMENT_ORDER): key for key in patch if key.startswith(ELEMENT_ORDER)}
    for name, directive in ordered.items():
        _order_list(made, name, patch[directive], patch, schema)
    for key in sorted(patch, key=_deletions_first):
        if key == RETAIN_KEYS or key.startswith(ELEMENT_ORDER) or key in ordered:
            continue
        if key.startswith(DELETE_FROM_LIST):
            _delete_from_list(made, key.removeprefix(DELETE_FROM_LIST), patch[key])
        elif patch[key] is None or (_is_directed(patch[key]) and not isinstance(made.get(key), dict)):
            made.pop(key, None)  # a directive for what is not there leaves nothing
        else:
            field = schema.field(key) if schema is not None else None
            made[key] = _merge_value(made.get(key), patch[key], field)
    return made


def _deletions_first(key: str) -> bool:
    return not key.startswith(DELETE_FROM_LIST)


def _merge_value(old: Any, new: Any, schema: Schema | None) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return _plain(new) if strategy_of(schema)[0] == "replace" else _merge_map(old, new, schema)
    if isinstance(old, list) and isinstance(new, list):
        return _merge_list(old, new, schema) if strategy_of(schema)[0] == "merge" else _plain(new)
    return _plain(new)


def _directed_map(patch: Obj) -> Obj:
    match patch[PATCH]:
        case "replace":
            return {key: _plain(value) for key, value in patch.items() if key != PATCH}
        case "delete":
            return {}
    raise _broken(f"unknown patch type: {patch[PATCH]} in map: {_names(patch)}")


def _retained(doc: Obj, patch: Obj) -> Obj:
    """Return a copy of ``doc`` with the keys of ``$retainKeys``, or with all keys without this directive."""
    if RETAIN_KEYS not in patch:
        return dict(doc)
    kept = patch[RETAIN_KEYS]
    if not isinstance(kept, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            raise BadRequest("invalid patch format of retainKeys")
    return {key: value for key, value in doc.items() if key in kept}


def _delete_from_list(made: Obj, name: str, doomed: Any) -> None:
    current = made.get(name)
    if not isinstance(doomed, list):
        raise BadRequest("invalid patch format of primitive list")
    if isinstance(current, list):
        gone = _Known(doomed)
        made[name] = [item for item in current if gone.place(item) is None]


def _order_list(made: Obj, name: str, order: Any, patch: Obj, schema: Schema | None) -> None:
    """Merge the list ``name`` and sort it in the order stated by the patch."""
    field = schema.field(name) if schema is not None else None
    key = field.merge_key if field is not None else ""
    old, new = made.get(name), patch.get(name)
    if not isinstance(order, list):
        found = {str: "string", int: "int64", float: "float64", bool: "bool", dict: "map[string]interface {}"}
        raise _broken(f"expected a []interface {{}}, but received a {found.get(type(order), '<nil>')}")
    if new is None:
        if name in patch:
            made.pop(name, None)
            return
    elif not isinstance(new, list):
        raise _broken(f"expected a list for {name}, but received a {type(new).__name__}")
    _check_order(new or [], order, key)
    if not isinstance(old, list):
        if new is not None:
            made[name] = in_stated_order(_plain(new), order, [], key)
        return
    merged = old if new is None else _merge_value(old, new, field)
    made[name] = in_stated_order(merged, order, old, key)


def _check_order(items: list[Any], order: list[Any], key: str) -> None:
    """The elements of a patch must appear in the order list, in the same relative order."""
    place = 0
    for item in items:
        if isinstance(item, dict) and PATCH in item:
            continue
        while place < len(order) and not same_element(order[place], item, key):
            place += 1
        if place == len(order):
            raise _broken(
                f"The order in patch list:\n{_identity(items, key)}\n doesn't match $setElementOrder list:\n"
                f"{_identity(order, key)}\n"
            )


def _merge_list(old: list[Any], new: list[Any], schema: Schema | None) -> list[Any]:
    """Merge two lists of a field whose strategy is ``merge``."""
    if not old and not new:
        return old
    if not _are_maps(old, new):
        return in_stated_order(_without_repeats([*old, *new]), new, old, "")
    if schema is None or not schema.merge_key:
        raise _broken("cannot merge lists without merge key")
    key = schema.merge_key
    kept, changes, replaced = _without_directives(old, new, key)
    if replaced:
        return [_plain(item) for item in changes]
    merged = list(kept)
    known = _Known(m.get(key) if isinstance(m, dict) else _NOTHING for m in merged)
    for item in changes:
        value = element_key(item, key)
        place = known.place(value)
        if place is None:
            merged.append(_plain(item))
            known.add(merged[-1].get(key))
        else:
            merged[place] = _merge_map(merged[place], item, schema.items)
    return in_stated_order(merged, changes, kept, key)


def _without_directives(old: list[Any], new: list[Any], key: str) -> tuple[list[Any], list[Any], bool]:
    """Return the remaining old entries, the changes, and True if the whole old list is replaced."""
    changes: list[Any] = []
    gone = _Known()
    replaced = False
    for item in new:
        match item.get(PATCH):
            case None:
                changes.append(item)
            case "delete":
                gone.add(element_key(item, key))
            case "replace":
                replaced = True
            case "merge":
                raise _broken("merging lists cannot yet be specified in the patch")
            case other:
                raise _broken(f"unknown patch type: {other} in map: {_names(item)}")
    if gone.count:
        old = [element for element in old if gone.place(element_key(element, key)) is None]
    return old, changes, replaced


_NOTHING: Any = object()


class _Known:
    """Values with their places: scalars are looked up, so that long lists are merged in proportion to their length;
    only lists and maps are compared one by one."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.count = 0
        self._scalars: dict[tuple[type, Any], int] = {}
        self._others: list[tuple[Any, int]] = []
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        if isinstance(value, list | dict):
            self._others.append((value, self.count))
        else:
            self._scalars.setdefault((type(value), value), self.count)
        self.count += 1

    def place(self, value: Any) -> int | None:
        """Of the first equal value; None: there is none."""
        if isinstance(value, list | dict):
            return next((place for other, place in self._others if same_json(other, value)), None)
        return self._scalars.get((type(value), value))


def _are_maps(*lists: list[Any]) -> bool:
    items = [item for one in lists for item in one]
    if any(isinstance(item, list) for item in items):
        raise ApiError(
            "the server rejected our request due to an error in our request", code=422, reason="Invalid"
        )  # lists of lists are not supported
    maps = sum(isinstance(item, dict) for item in items)
    if maps not in (0, len(items)):
        raise _broken("list element types are not identical")
    return maps > 0


def in_stated_order(items: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Elements named by ``order`` in that order, the others put among them as they stood in ``live``.

    An element that is not in ``order`` goes before the first ordered one that followed it in ``live``, else to the
    end (strategicpatch, ``normalizeElementOrder``).
    """
    stated, standing = _places(order, key), _places(live, key)
    last = len(order) + len(live)
    named = [item for item in items if element_token(item, key) in stated]
    unnamed = [item for item in items if element_token(item, key) not in stated]
    ordered = sorted(named, key=lambda item: stated[element_token(item, key)])
    others = sorted(unnamed, key=lambda item: standing.get(element_token(item, key), last))
    made: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(ordered):
        other = standing.get(element_token(others[left], key), last)
        if other < standing.get(element_token(ordered[right], key), -1):
            made.append(others[left])
            left += 1
        else:
            made.append(ordered[right])
            right += 1
    return [*made, *ordered[right:], *others[left:]]


def _places(items: list[Any], key: str) -> dict[tuple[str, str], int]:
    """The first place of each element."""
    places: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items):
        places.setdefault(element_token(item, key), index)
    return places


def element_token(item: Any, key: str) -> tuple[str, str]:
    """What tells one element from another: the merge key's value, or the element itself where it is a scalar."""
    value = item.get(key) if isinstance(item, dict) else item
    return type(value).__name__, str(value)


def same_element(left: Any, right: Any, key: str) -> bool:
    """Whether two list elements are the same one: by merge key, or by value for scalars."""
    return element_token(left, key) == element_token(right, key)


def element_key(item: Any, key: str) -> Any:
    """The merge key's value; raises ApiError (500, without reason) where an element has none."""
    if not isinstance(item, dict) or key not in item:
        raise _broken(f"map: {_names(item)} does not contain declared merge key: {key}")
    return item[key]


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and PATCH in value


def _plain(value: Any) -> Any:
    """Return a patch's value for a missing field: without directives, nulls and deleted elements."""
    if isinstance(value, dict):
        return {
            key: _plain(child)
            for key, child in value.items()
            if child is not None
            and not _is_directed(child)
            and key != RETAIN_KEYS
            and not key.startswith(("$patch", ELEMENT_ORDER, DELETE_FROM_LIST))
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not (isinstance(item, dict) and PATCH in item and _vanishes(item))]
    return value


def _vanishes(item: Obj) -> bool:
    """A list element that only directs: a deletion, or the mark that the list is replaced."""
    return item[PATCH] == "delete" or (item[PATCH] == "replace" and len(item) == 1)


def _without_repeats(items: list[Any]) -> list[Any]:
    return list({element_token(item, ""): item for item in reversed(items)}.values())[::-1]


def _identity(items: list[Any], key: str) -> str:
    return "[" + " ".join(str(item.get(key) if isinstance(item, dict) else item) for item in items) + "]"


def _names(item: Any) -> str:
    """Return the field names of a map; values may be secret and are never shown."""
    return "[" + " ".join(sorted(item)) + "]" if isinstance(item, dict) else type(item).__name__


def _broken(message: str) -> ApiError:
    """500 without a reason: how the API server answers an error that it has not classified."""
    return ApiError(message, code=500, reason="")
