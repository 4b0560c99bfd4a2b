"""Values as templates print them and YAML reads them again; pure.

The chart prints most values without quotes, so a text that looks like a number becomes one, and an empty one null. All
numbers are ``float64``: 1000000 prints as ``1e+06``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from syncline.clustergroup.errors import RenderFailed
from syncline.kube.gotemplate.errors import TemplateError
from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.gotemplate.functions import Function, Kind
from syncline.kube.gotemplate.sprig.library import SPRIG
from syncline.kube.gotemplate.template import MissingKey, parse
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import YamlError, dump, load

_INTEGERS: Final = 2.0**63


def floats(value: Any) -> Any:
    """Return values with the numbers that Go's JSON decoder makes."""
    if isinstance(value, dict):
        return {str(key): floats(one) for key, one in value.items()}
    if isinstance(value, list):
        return [floats(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def whole(value: Any) -> Any:
    """Return a value with whole numbers as integers, as objects have them; JSON's integers have 64 bits."""
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _INTEGERS else value


def is_empty(value: Any) -> bool:
    """Return whether ``default`` and ``if`` treat a value as absent."""
    return value is None or value is False or value == 0 or value in ("", [], {})


def first(*values: Any) -> Any:
    """Return the first value that is not empty; None: there is none."""
    return next((one for one in values if not is_empty(one)), None)


def printed(value: Any) -> str:
    """Return a value as ``{{ }}`` prints it; nil prints nothing."""
    return "" if value is None else value if isinstance(value, str) else sprint(value)


@lru_cache(maxsize=4096)
def _read(text: str) -> Any:
    return load(text)


def read_again(text: str, part: str) -> Any:
    """Return what YAML makes of a printed value. Raises :class:`RenderFailed` if it breaks its object."""
    try:
        found = _read(f"value: {text}\n")
    except YamlError as error:
        raise RenderFailed(part, f"the value {text[:80]!r} breaks the YAML: {error}", unreadable=True) from None
    if not isinstance(found, dict) or found.keys() != {"value"}:
        raise RenderFailed(part, f"the value {text[:80]!r} breaks the YAML", unreadable=True)
    return found["value"]


@dataclass(frozen=True, slots=True)
class Release:
    """What texts of values may know of the release that they belong to."""

    name: str = "vp"
    namespace: str = "default"
    picture: str = ""
    """Data URI of the chart's own picture of ConsoleLinks; empty: a dot."""

    @property
    def around(self) -> Obj:
        """What stands beside ``.Values`` for texts."""
        fixed = {"Service": "Helm", "IsInstall": True, "IsUpgrade": False, "Revision": 1}
        return {"Release": {"Name": self.name, "Namespace": self.namespace, **fixed}, "Chart": {"Name": "clustergroup"}}


NO_RELEASE: Final = Release()


class Printer:
    """Prints values into the objects of one part of the chart, whose name errors give."""

    def __init__(self, part: str, values: Obj, release: Release = NO_RELEASE) -> None:
        self.part, self.values, self.release = part, values, release

    def plain(self, value: Any) -> Any:
        """A value printed without quotes."""
        return read_again(printed(value), self.part)

    def key(self, value: Any) -> str:
        """A key printed without quotes."""
        return printed(self.plain(value))

    def inside(self, value: Any) -> Any:
        """A value printed between double quotes by hand."""
        return read_again(f'"{printed(value)}"', self.part)

    def single(self, value: Any) -> Any:
        """A value printed between single quotes by hand."""
        return read_again(f"'{printed(value)}'", self.part)

    def block(self, text: Any, what: str) -> Any:
        """A text that ``nindent`` prints below ``|``: its first line stays empty, and it ends with one newline."""
        if not isinstance(text, str):
            raise RenderFailed(self.part, f"{what}: wrong type for value; expected string; got {printed(text)[:80]!r}")
        return read_again("|\n" + "".join(f"\n  {line}" for line in text.split("\n")), self.part)

    def quoted(self, value: Any) -> str | None:
        """A value through ``quote``, which prints nothing for nil."""
        return None if value is None else printed(value)

    def labelled(self, value: Any) -> Obj:
        """Labels or annotations: quoted, and empty where the value is."""
        if is_empty(value):
            return {}
        pairs = self.pairs(value, "labels and annotations")
        return {self.key(key): "" if is_empty(one) else printed(one) for key, one in pairs}

    def lines(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """Keys and values printed without quotes, one pair a line; None: nothing is left of them."""
        text = "".join(f"{printed(key)}: {printed(value)}\n" for key, value in pairs)
        try:
            return load(text)
        except YamlError as error:
            raise RenderFailed(self.part, f"{text[:80]!r} breaks the YAML: {error}", unreadable=True) from None

    def annotations(self, value: Any) -> Obj:
        made = self.labelled(value)
        return {"annotations": made} if made else {}

    def pairs(self, value: Any, what: str) -> list[tuple[str, Any]]:
        """The entries of a map or a list, in the order of a range. Raises :class:`RenderFailed` for another type."""
        if value is None:
            return []
        if isinstance(value, Mapping):
            return [(key, value[key]) for key in sorted(value, key=lambda one: str(one).encode())]
        if isinstance(value, list):
            return [(str(number), one) for number, one in enumerate(value)]
        raise RenderFailed(self.part, f"{what}: range can't iterate over {printed(value)[:80]}")

    def each(self, value: Any, what: str) -> list[Any]:
        return [one for _, one in self.pairs(value, what)]

    def field(self, value: Any, name: str, what: str) -> Any:
        """A field of a map. Raises :class:`RenderFailed` for what is none."""
        if isinstance(value, Mapping):
            return value.get(name)
        problem = "nil pointer" if value is None else f"it is {printed(value)[:80]!r}, not a map"
        raise RenderFailed(self.part, f"{what}: cannot read {name}: {problem}")

    def reach(self, value: Any, *names: str) -> Any:
        """A field of a field, as ``and`` looks for it: None where one on the way is empty."""
        for name in names:
            if is_empty(value):
                return None
            value = self.field(value, name, name)
        return value

    def same(self, value: Any, text: str, what: str) -> bool:
        """Whether a value is a text, as ``eq`` says. Raises :class:`RenderFailed` for values of another type."""
        if value is None or isinstance(value, str):
            return bool(value == text)
        problem = f"incompatible types for comparison: {printed(value)[:80]} and {text!r}"
        raise RenderFailed(self.part, f"{what}: {problem}")

    def lowered(self, value: Any, what: str) -> str:
        """A text in lower case. Raises :class:`RenderFailed` for what is none."""
        if not isinstance(value, str):
            raise RenderFailed(self.part, f"{what}: wrong type for value; expected string; got {printed(value)[:80]!r}")
        return value.lower()

    def template(self, text: Any, what: str) -> str:
        """A text that is a template itself. Raises :class:`RenderFailed`."""
        if not isinstance(text, str):
            raise RenderFailed(self.part, f"{what}: wrong type for value; expected string; got {printed(text)[:80]!r}")
        return expanded(text, self.values, self.part, what, self.release)


def expanded(text: str, values: Obj, part: str, what: str, release: Release = NO_RELEASE) -> str:
    """Render a text of the values, with the values as ``.Values``. Raises :class:`RenderFailed`."""
    if "{{" not in text:
        return text
    try:
        made = parse(what, text, FUNCTIONS, missing_key=MissingKey.ZERO).render({"Values": values, **release.around})
    except TemplateError as error:
        raise RenderFailed(part, f"{what}: {error}") from None
    return made.replace("<no value>", "")


def to_yaml(value: Any) -> str:
    return dump(whole(value)).removesuffix("\n")


FUNCTIONS: Mapping[str, Function] = {
    **SPRIG,
    "toYaml": Function(to_yaml, (Kind.ANY,), result=Kind.STRING),
}
"""What texts of the values may call: the functions whose result depends on their arguments alone."""
