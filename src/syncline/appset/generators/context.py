"""What all generators of one set share: :class:`Context` with facts, the renderer, and the questions they asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from syncline.appset.generators.errors import GenerationError, Unanswered
from syncline.appset.generators.reading import Element
from syncline.appset.questions import Answer, Facts, Question
from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.functions import changing_functions
from syncline.appset.rendering.text import Renderer
from syncline.kube.gotemplate.values import StringMap
from syncline.kube.objects import Obj, dig, name_of, namespace_of

MAX_ROWS = 100_000
"""The most rows of a set."""
MAX_QUESTIONS = 10_000
"""The most questions of a set."""

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]
Generate: TypeAlias = Callable[[Element, "Context"], Rows]


class Context:
    """Used for one generation; not shared. Raises :class:`GenerationError` for a set that is none."""

    def __init__(self, appset: Obj, facts: Facts) -> None:
        spec = Element(appset.get("spec"), "spec")
        self.appset = appset
        self.spec = spec
        self.name, self.namespace = name_of(appset), namespace_of(appset)
        self.facts = facts
        self.go = spec.flag("goTemplate")
        changing = partial(changing_functions, facts.now, facts.seed)
        self.renderer = Renderer(go=self.go, options=spec.texts("goTemplateOptions"), changing=changing)
        self.asked: dict[Question, float] = {}
        self.missing: dict[Question, None] = {}
        self._count = 0

    @property
    def project(self) -> str:
        """The project of the set's template, as written."""
        return str(dig(self.appset, "spec", "template", "spec", "project") or "")

    @property
    def trusted(self) -> bool:
        """Whether the set is in the control namespace."""
        return self.namespace == self.facts.control_namespace

    def ask(self, question: Question, seconds: float) -> Answer:
        """Return the answer; raises :class:`Unanswered`. ``seconds``: when the generator wants it again."""
        known = self.asked.get(question)
        self.asked[question] = seconds if known is None else _sooner(known, seconds)
        if len(self.asked) > MAX_QUESTIONS:
            raise GenerationError(f"the generators ask more than {MAX_QUESTIONS} questions; make a matrix smaller")
        answer = self.facts.answers.get(question)
        if answer is None:
            self.missing[question] = None
            raise Unanswered
        return answer

    def count(self, rows: int) -> None:
        """Count rows as they are made; raises :class:`GenerationError` above :data:`MAX_ROWS`."""
        self._count += rows
        if self._count > MAX_ROWS:
            raise GenerationError(f"the generators make more than {MAX_ROWS} rows; split the set or select fewer")

    def add_values(self, params: Row, element: Element) -> None:
        """Add ``values`` of an element, rendered with the row; they do not see one another."""
        made: dict[str, str] = {}
        for key, text in element.text_map("values").items():
            try:
                made[key] = self.renderer.replace(text, params)
            except RenderError as error:
                raise GenerationError(
                    "failed to replace templated string: failed to replace templated string with rendered values: "
                    f"{error}"
                ) from None
        self.put_values(params, made)

    def put_values(self, params: Row, made: dict[str, str]) -> None:
        """Add ``values`` as they are: below ``values`` for Go templates, else as ``values.KEY``."""
        if self.go:
            if made:
                params["values"] = StringMap(made)
            return
        params.update({f"values.{key}": text for key, text in made.items()})


def _sooner(one: float, other: float) -> float:
    return min(one or other, other or one)
