"""Expressions of recordings and tests, evaluated by the process that evaluates those of users."""

from __future__ import annotations

from syncline.assembly.scripts.expressions import AnswersNow

__all__ = ["ANSWERS"]

ANSWERS = AnswersNow()
