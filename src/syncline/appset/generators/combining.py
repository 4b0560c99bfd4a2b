"""Rows of whole elements: :func:`transformed`, and the generators that combine others, ``matrix`` and ``merge``.

Source of the rules: Argo CD ``Transform``, ``MatrixGenerator``, ``MergeGenerator``. Merged rows come
in the order of the first child; upstream's order is random.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.element import COMBINING, KINDS, kinds_of, selected, selector_of
from syncline.appset.generators.errors import GenerationError, Unanswered
from syncline.appset.generators.interpolating import Interpolation
from syncline.appset.generators.reading import Element
from syncline.appset.rendering.goforms import GoError, json_text, shown
from syncline.appset.rendering.merging import overridden
from syncline.kube.selectors import Selector


@dataclass(frozen=True, slots=True)
class Transformed:
    """The rows of one kind of an element; ``error`` instead of rows if it failed."""

    kind: str
    rows: Rows
    error: str = ""


def transformed(element: Element, context: Context, depth: int = 0) -> list[Transformed]:
    """Return the rows of each kind of an element. Raises :class:`GenerationError` for a bad selector, and
    :class:`Unanswered`."""
    selector = selector_of(element)
    return [_transformed(element, kind, selector, context, depth) for kind in kinds_of(element, depth)]


def _transformed(element: Element, kind: str, selector: Selector | None, context: Context, depth: int) -> Transformed:
    try:
        rows = _rows(element, kind, context, depth)
        context.count(len(rows))
        return Transformed(kind, selected(rows, selector))
    except GenerationError as error:
        return Transformed(kind, [], str(error))


def _rows(element: Element, kind: str, context: Context, depth: int) -> Rows:
    below = element.below(kind)
    assert below is not None  # kinds_of saw it
    generate = KINDS[kind].rows
    if generate is not None:
        return generate(below, context)
    return _matrix(below, context, depth) if kind == COMBINING[0] else _merge(below, context, depth)


def _child_rows(element: Element, context: Context, depth: int) -> Rows:
    """Return the rows of a child, which must have one kind of generator."""
    try:
        found = transformed(element, context, depth)
        failed = next((one.error for one in found if one.error), "")
        if failed:
            raise GenerationError(failed)
    except GenerationError as error:
        raise GenerationError(f"child generator returned an error on parameter generation: {error}") from None
    if not found:
        raise GenerationError("child generator generated no parameters")
    if len(found) > 1:
        raise GenerationError("found more than one generator in matrix.Generators")
    return found[0].rows


# --- matrix -------------------------------------------------------------------------------------------------------


def _matrix(element: Element, context: Context, depth: int) -> Rows:
    """Combine each row of the first child with each of the second, which is filled with the first's row."""
    children = element.elements("generators")
    if len(children) < 2:
        raise GenerationError("found less than two generators, Matrix support only two")
    if len(children) > 2:
        raise GenerationError("found more than two generators, Matrix support only two")
    try:
        first = _child_rows(children[0], context, depth + 1)
    except GenerationError as error:
        raise GenerationError(f"error failed to get params for first generator in matrix generator: {error}") from None
    made: Rows = []
    waits = False
    second = _Second(children[1], context, depth + 1)
    for row in first:
        try:
            found = second.rows(row)
        except Unanswered:  # the other rows may ask more, all at once
            waits = True
            continue
        except GenerationError:
            if waits:  # the first row with an error counts, and one before may have one
                continue
            raise
        context.count(len(found))
        made += [_combined(row, other, context) for other in found]
    if waits:
        raise Unanswered
    return made


class _Second:
    """The second child of a matrix; if it does not depend on the row it is generated once."""

    def __init__(self, element: Element, context: Context, depth: int) -> None:
        self._element, self._context, self._depth = element, context, depth
        self._filling: Interpolation | None = None
        self._known: Rows | None = None

    def rows(self, row: Row) -> Rows:
        if self._known is not None and row:
            return self._known
        try:
            found = _child_rows(self._filled(row), self._context, self._depth)
        except GenerationError as error:
            raise GenerationError(
                f"failed to get params for second generator in the matrix generator: {error}"
            ) from None
        if row and self._filling is not None and not self._filling.varies:
            self._known = found
        return found

    def _filled(self, row: Row) -> Element:
        try:
            selector_of(self._element)  # its errors come before those of filling
            if self._filling is None:
                self._filling = Interpolation(self._element.raw, self._context.renderer)
            return Element(self._filling.fill(row), self._element.path)
        except GenerationError as error:
            raise GenerationError(f"child generator returned an error on parameter generation: {error}") from None


def _combined(first: Row, second: Row, context: Context) -> Row:
    """Merge two rows: for Go templates the first wins; else all values become texts, and must not differ."""
    if context.go:
        try:
            return overridden(second, first)
        except GoError as error:
            where = "failed to merge params from the second generator in the matrix generator with the first"
            raise GenerationError(f"{where}: {error}") from None
    made: Row = {key: shown(value) for key, value in first.items()}
    for key, value in second.items():
        text = shown(value)
        mine = made.setdefault(key, text)
        if mine != text:
            raise GenerationError(
                "failed to combine string maps with merging params for the matrix generator: found duplicate key "
                f"{key} with different value, a: {mine} ,b: {text}"
            )
    return made


# --- merge --------------------------------------------------------------------------------------------------------


def _merge(element: Element, context: Context, depth: int) -> Rows:
    """Override rows of the first child with rows of the others that have the same merge keys."""
    children = element.elements("generators")
    if len(children) < 2:
        raise GenerationError("found less than two generators, Merge requires two or more")
    found = _all_rows(children, context, depth)
    keys = sorted(set(element.texts("mergeKeys")))
    base = _by_keys(found[0], keys)
    for rows in found[1:]:
        others = _by_keys(rows, keys)
        for key in base.keys() & others.keys():
            base[key] = _merged(base[key], others[key], context)
    return list(base.values())


def _all_rows(children: list[Element], context: Context, depth: int) -> list[Rows]:
    found: list[Rows] = []
    waits = False
    for index, child in enumerate(children):
        try:
            found.append(_child_rows(child, context, depth + 1))
        except Unanswered:  # the other children may ask more, all at once
            waits = True
        except GenerationError as error:
            if waits:  # the first child with an error counts, and one before may have one
                continue
            where = f"error getting params from generator {index + 1} of {len(children)}"
            raise GenerationError(f"error getting param sets from generators: {where}: {error}") from None
    if waits:
        raise Unanswered
    return found


def _by_keys(rows: Rows, keys: list[str]) -> dict[str, Row]:
    if not keys:
        why = "no merge keys were specified, Merge requires at least one"
        raise GenerationError(f"error getting param sets by merge key: {why}")
    made: dict[str, Row] = {}
    for row in rows:
        key = json_text({name: row.get(name) for name in keys})
        if key in made:
            raise GenerationError(
                "error getting param sets by merge key: the parameters from a generator were not unique by the given "
                f"mergeKeys, Merge requires all param sets to be unique. Duplicate key was {key}"
            )
        made[key] = row
    return made


def _merged(base: Row, other: Row, context: Context) -> Row:
    if not context.go:
        return {**base, **other}
    try:
        return overridden(base, other)
    except GoError as error:
        raise GenerationError(f"error merging base param set with override param set: {error}") from None
