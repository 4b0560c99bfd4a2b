"""What templates ask of the API, as data: a :class:`Question` and its :class:`Answer`.

A template is rendered with the answers so far; one that is missing ends the rendering (:class:`Unknown`), is asked for,
and the template is rendered again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncline.kube.gotemplate.functions import Interrupted
from syncline.kube.objects import GVK, Obj


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """``name`` empty: all objects that ``selector`` selects; ``namespace`` empty: in all namespaces, or of the
    cluster."""

    gvk: GVK
    namespace: str = ""
    name: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """``found``: the object, or a List; None with ``error``, the text of the refusal. ``missing``: the object does not
    exist; ``unserved``: its kind does not; ``namespaced``: whether the kind is."""

    found: Obj | None = field(default=None, repr=False)
    error: str = ""
    missing: bool = False
    unserved: bool = False
    namespaced: bool = True

    @property
    def passing(self) -> bool:
        """Whether another attempt may be answered otherwise, and no watch announces it."""
        return self.unserved or (bool(self.error) and not self.missing)


Answers = Mapping[Question, Answer]


class Unknown(Interrupted):
    """The answer to a question is not known yet."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question
