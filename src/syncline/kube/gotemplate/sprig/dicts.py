"""sprig's functions of maps. ``set``, ``unset`` and ``merge`` change their first argument, as Go's maps do.

Source: sprig's dict.go, mergo 1.0. Go returns keys and values in a random order; here they are sorted by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_items
from syncline.kube.gotemplate.sprig.reflection import NIL_TYPES, Walk, is_empty, strval
from syncline.kube.gotemplate.values import NilDict, StringMap, Strings, encode, go_type

ANY, STRING, DICT = Kind.ANY, Kind.STRING, Kind.DICT
MAP_TYPE = DICT.value


def _dict(*pairs: Any) -> dict[str, Any]:
    """Make a map of keys and values in turn; a last key without a value gets an empty text."""
    made: dict[str, Any] = {}
    for at in range(0, len(pairs), 2):
        made[strval(pairs[at])] = pairs[at + 1] if at + 1 < len(pairs) else ""
    return made


def _set(values: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    if isinstance(values, NilDict):
        raise FunctionError("assignment to entry in nil map")
    check_items(len(values) + 1)
    values[key] = value
    return values


def _unset(values: dict[str, Any], key: str) -> dict[str, Any]:
    values.pop(key, None)
    return values


def _sorted(values: Mapping[str, Any]) -> list[str]:
    return sorted(values, key=encode)


def _keys(*maps: dict[str, Any]) -> Strings:
    check_items(sum(map(len, maps)))
    return Strings(key for values in maps for key in _sorted(values))


def _pick(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}


def _omit(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def _dig(*path: Any) -> Any:
    """Return the value below a path of keys, or the default; the default and the map come last."""
    if len(path) < 3:
        raise FunctionError("dig needs at least three arguments")
    *keys, default, values = path
    values = _asserted(values)
    for key in keys:
        if not isinstance(key, str):
            raise _conversion(key, "string")
    for at, key in enumerate(keys):
        if key not in values:
            return default
        value = values[key]
        if at == len(keys) - 1:
            return value
        values = _asserted(value)
    return default


def _asserted(value: Any) -> dict[str, Any]:
    if go_type(value) != MAP_TYPE:
        raise _conversion(value, MAP_TYPE)
    found: dict[str, Any] = value
    return found


def _conversion(value: Any, wanted: str) -> FunctionError:
    name = "nil" if value is None else go_type(value)
    return FunctionError(f"interface conversion: interface {{}} is {name}, not {wanted}")


def _merge(into: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    return _merged(into, sources, overwrite=False)


def _merge_overwrite(into: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    return _merged(into, sources, overwrite=True)


def _merged(into: dict[str, Any], sources: tuple[dict[str, Any], ...], *, overwrite: bool) -> dict[str, Any]:
    walk = Walk()
    for source in sources:
        if isinstance(source, NilDict):
            continue
        into = {} if isinstance(into, NilDict) else into
        _merge_one(into, source, overwrite, walk, 0)
    return into


def _merge_one(into: dict[str, Any], source: dict[str, Any], overwrite: bool, walk: Walk, depth: int) -> None:
    """Take what ``into`` lacks, or has as an empty value. With ``overwrite`` take everything, also what is empty; two
    maps are merged in both cases."""
    walk.enter(depth, len(source))
    for key, value in list(source.items()):
        there = into.get(key)
        if value is None and not overwrite:
            continue
        both = isinstance(value, dict) and isinstance(there, dict)
        if isinstance(value, dict) and isinstance(there, dict):
            _merge_one(there, value, overwrite, walk, depth + 1)
        if there is not None and not is_empty(there) and (both or not overwrite):
            continue
        if isinstance(into, StringMap) and not isinstance(value, str):
            name = go_type(value) if isinstance(value, list) else ANY.value
            raise FunctionError(f"reflect.Value.SetMapIndex: value of type {name} is not assignable to type string")
        into[key] = value


def _deep_copy(value: Any) -> Any:
    if value is None:
        raise FunctionError("reflect: call of reflect.Value.Type on zero Value")
    return _copied(value, Walk(), 0)


def _copied(value: Any, walk: Walk, depth: int) -> Any:
    if isinstance(value, NIL_TYPES):
        return value
    if isinstance(value, dict):
        walk.enter(depth, len(value))
        return type(value)((key, _copied(one, walk, depth + 1)) for key, one in value.items())
    if isinstance(value, list):
        walk.enter(depth, len(value))
        return type(value)(_copied(one, walk, depth + 1) for one in value)
    return value


COPY = Function(_deep_copy, (ANY,))

DICTS: Mapping[str, Function] = {
    "dict": Function(_dict, (ANY,), variadic=True, result=DICT),
    "get": Function(lambda values, key: values.get(key, ""), (DICT, STRING)),
    "set": Function(_set, (DICT, STRING, ANY), result=DICT),
    "unset": Function(_unset, (DICT, STRING), result=DICT),
    "hasKey": Function(lambda values, key: key in values, (DICT, STRING), result=Kind.BOOL),
    "pluck": Function(
        lambda key, *maps: [values[key] for values in maps if key in values],
        (STRING, DICT),
        variadic=True,
        result=Kind.LIST,
    ),
    "keys": Function(_keys, (DICT,), variadic=True, result=Kind.STRINGS),
    "values": Function(lambda values: [values[key] for key in _sorted(values)], (DICT,), result=Kind.LIST),
    "pick": Function(_pick, (DICT, STRING), variadic=True, result=DICT),
    "omit": Function(_omit, (DICT, STRING), variadic=True, result=DICT),
    "merge": Function(_merge, (DICT, DICT), variadic=True),
    "mustMerge": Function(_merge, (DICT, DICT), variadic=True),
    "mergeOverwrite": Function(_merge_overwrite, (DICT, DICT), variadic=True),
    "mustMergeOverwrite": Function(_merge_overwrite, (DICT, DICT), variadic=True),
    "deepCopy": COPY,
    "mustDeepCopy": COPY,
    "dig": Function(_dig, (ANY,), variadic=True),
}
