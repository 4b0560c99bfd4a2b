"""Values as Go's decoders and printers have them: :func:`decoded`, :func:`shown`, :func:`from_yaml`, :func:`flattened`.

Numbers of JSON and YAML are ``float64`` in Go, so rows have floats where upstream's maps have ``float64``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from syncline.kube.gotemplate.values import Bytes, Opaque, StringMap
from syncline.kube.text.jsontext import json_kind
from syncline.kube.yaml.loading import load_all, only_value
from syncline.kube.yaml.nodes import YamlError
from syncline.kube.yaml.resolve import go_number, go_shortest

GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go's ``strings.TrimSpace`` trims."""
ANY_MAP = "map[string]interface {}"
MAX_DEPTH = 100
"""Lists and maps within one another in a row."""


class RawJson(Opaque):
    """Go's ``apiextensionsv1.JSON``: templates see its bytes, not its value."""

    __slots__ = ("raw", "value")
    go_type: ClassVar[str] = "v1.JSON"
    kind: ClassVar[str] = "struct"

    def __init__(self, value: Any) -> None:
        self.value = value
        self.raw = json_text(value).encode()

    def fields(self) -> Mapping[str, Any]:
        return {"Raw": Bytes(self.raw)}

    def json(self) -> str:
        """Return what Go's ``MarshalJSON`` gives; for ``toJson``."""
        return self.raw.decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawJson) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"RawJson({self.value!r})"


class GoError(ValueError):
    """An error of one of Go's decoders, in its words."""


def decoded(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return JSON values as ``encoding/json`` decodes them into ``interface {}``; raises :class:`GoError`."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    if depth == 0:
        raise GoError(f"lists and maps are nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        return {key: decoded(item, depth - 1) for key, item in value.items()}
    return [decoded(item, depth - 1) for item in value]


def json_text(value: Any) -> str:
    """Return compact JSON with sorted keys; whole floats as integers."""
    return msgspec.json.encode(plain(value), order="sorted").decode()


def plain(value: Any) -> Any:
    """Return a row's value as JSON has it: whole floats are integers, raw JSON its value, other Go values texts."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return go_number(value)
    if isinstance(value, Opaque):
        return value.value if isinstance(value, RawJson) else (value.text() or "")
    return value


def shown(value: Any) -> str:
    """Return a row's value as Go's ``%v`` prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_shortest(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if isinstance(value, RawJson):
        return f"{{{shown(list(value.raw))}}}"
    return str(value)


def flattened(value: Mapping[str, Any], *, typed: bool = False) -> dict[str, Any]:
    """Return nested maps and lists as one map with keys joined by dots; empty ones disappear.

    Typed lists and maps of Go (``Strings``, ``StringMap``) stay whole; ``typed``: such maps within maps do not.
    """
    made: dict[str, Any] = {}
    _flatten(made, "", value, typed)
    return made


def _flatten(made: dict[str, Any], prefix: str, value: Any, typed: bool) -> None:
    within = isinstance(value, dict)
    pairs = value.items() if within else enumerate(value)
    for key, item in pairs:
        kind = type(item)
        if kind is dict or kind is list or (typed and within and kind is StringMap):
            _flatten(made, f"{prefix}{key}.", item, typed and within)
        else:
            made[f"{prefix}{key}"] = item


def filled_raw(value: Any) -> Any:
    """Return JSON values as upstream has them once it filled a field of any JSON: numbers are floats on the way, and
    entries that are null are gone. Raises :class:`GoError`."""
    return _without_nulls(plain(decoded(value)))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def copied(value: Any) -> Any:
    """Return a copy of a row's value whose maps and lists can be changed."""
    if isinstance(value, dict):
        return type(value)({key: copied(item) for key, item in value.items()})
    if isinstance(value, list):
        return type(value)([copied(item) for item in value])
    return value


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts of JSON values, also keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def decoded_map(value: Any, into: str = ANY_MAP) -> dict[str, Any]:
    """Return a JSON object as Go decodes it into a map; null is an empty one. Raises :class:`GoError`."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise GoError(f"json: cannot unmarshal {json_kind(value)} into Go value of type {into}")
    made: dict[str, Any] = decoded(value)
    return made


def decoded_maps(value: Any) -> list[dict[str, Any]]:
    """Return a JSON list of objects as Go decodes it; raises :class:`GoError`."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise GoError(f"json: cannot unmarshal {json_kind(value)} into Go value of type []{ANY_MAP}")
    return [decoded_map(item) for item in value]


def from_yaml(text: str) -> Any:
    """Return the JSON value of the first document, as ``sigs.k8s.io/yaml`` converts it; raises :class:`GoError`."""
    try:
        return only_value(load_all(text, by_lines=False), first=True)
    except YamlError as error:
        if error.message.startswith("a mapping or list is used as a key"):
            # Often a tag without quotes, as in {{ .x }}: a map in a map.
            raise GoError(f"yaml: invalid map key: map[interface {{}}]interface {{}}{{}}: {error.message}") from None
        raise GoError(f"yaml: line {error.position.line}: {error.message}") from None


def yaml_map(text: str) -> dict[str, Any]:
    """Decode YAML into ``map[string]interface {}``; raises :class:`GoError`."""
    made: dict[str, Any] = _unmarshaled(decoded_map, _converted(text))
    return made


def yaml_maps(text: str) -> list[dict[str, Any]]:
    """Decode YAML into ``[]map[string]interface {}``; raises :class:`GoError`."""
    made: list[dict[str, Any]] = _unmarshaled(decoded_maps, _converted(text))
    return made


def yaml_objects(text: str) -> list[dict[str, Any]]:
    """Decode YAML that is a map (or empty), or a list of maps; raises :class:`GoError`."""
    found = _converted(text)
    if found is None or isinstance(found, dict):
        return [decoded_map(found)]
    made: list[dict[str, Any]] = _unmarshaled(decoded_maps, found)
    return made


def yaml_list(text: str) -> list[Any]:
    """Decode YAML into ``[]interface {}``; raises :class:`GoError`."""
    made: list[Any] = _unmarshaled(_decoded_list, _converted(text))
    return made


def _decoded_list(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise GoError(f"json: cannot unmarshal {json_kind(value)} into Go value of type []interface {{}}")
    return [decoded(item) for item in value or ()]


def _converted(text: str) -> Any:
    try:
        return from_yaml(text)
    except GoError as error:
        raise GoError(f"error converting YAML to JSON: {error}") from None


def _unmarshaled(decode: Callable[[Any], Any], value: Any) -> Any:
    try:
        return decode(value)
    except GoError as error:
        raise GoError(f"error unmarshaling JSON: while decoding JSON: {error}") from None
