"""Why an element has no rows: :class:`GenerationError`, :class:`Unanswered`."""

from __future__ import annotations


class GenerationError(ValueError):
    """The message is upstream's where upstream has one."""


class Unanswered(Exception):
    """A question has no answer yet; the :class:`~syncline.appset.generators.context.Context` has it."""
