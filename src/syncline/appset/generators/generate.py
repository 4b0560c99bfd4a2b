"""Turns an ApplicationSet and facts into Applications: :func:`generate`. Pure.

Source of the rules: Argo CD ``GenerateApplications``. An error of one element does not stop the others, so that all are
reported; with any error nothing may be written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from syncline.appset.generation import Failure, Generated, Made, Row
from syncline.appset.generators.combining import Transformed, transformed
from syncline.appset.generators.context import Context
from syncline.appset.generators.element import intervals, kinds_of, least
from syncline.appset.generators.errors import GenerationError, Unanswered
from syncline.appset.generators.reading import Element
from syncline.appset.questions import Facts
from syncline.appset.rendering.application import ApplicationTemplate, merged_template
from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.kept import RenderedApplications
from syncline.kube.objects import Obj

PARAMETERS = "ApplicationGenerationFromParamsError"
TEMPLATE = "RenderTemplateParamsError"
"""Upstream's reasons."""
MAX_SIZE = 256_000_000
"""Bytes of all Applications of a set as JSON."""


@dataclass
class _Result:
    kept: RenderedApplications | None = None
    size: int = 0
    made: list[Made] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    intervals: list[float] = field(default_factory=list)


def generate(appset: Obj, facts: Facts, kept: RenderedApplications | None = None) -> Generated:
    """Return all Applications of a set, or why they cannot be known. The result shares parts with ``appset``; neither
    may be changed. ``kept``: Applications of earlier calls, so that only rows that changed are rendered; without any
    effect on the result."""
    result = _Result(kept)
    try:
        context = Context(appset, facts)
        listed = context.spec.items("generators")
    except GenerationError as error:
        return Generated(failures=(Failure(PARAMETERS, str(error), "spec"),))
    for index, raw in enumerate(listed):
        path = f"spec.generators[{index}]"
        try:
            element = Element(raw, path)
            result.intervals += intervals(element, context)
            _add(element, context, result)
        except Unanswered:
            pass  # the context has the question
        except GenerationError as error:
            result.failures.append(Failure(PARAMETERS, str(error), path))
    return Generated(
        tuple(result.made),
        tuple(result.failures),
        tuple(context.missing),
        tuple(context.asked.items()),
        tuple(result.warnings),
        least(result.intervals),
    )


def _add(element: Element, context: Context, result: _Result) -> None:
    kinds = kinds_of(element)
    if not kinds:
        result.warnings.append(f"{element.path} has no generator that Argo CD knows: it makes no rows")
    elif len(kinds) > 1:
        result.warnings.append(f"{element.path} has several generators ({', '.join(kinds)}): each makes rows")
    found = transformed(element, context)
    failed = [one for one in found if one.error]
    result.failures += [Failure(PARAMETERS, one.error, f"{element.path}.{one.kind}") for one in failed]
    for one in found if not failed else ():
        _render(element, one, context, result)


def _render(element: Element, found: Transformed, context: Context, result: _Result) -> None:
    origin = f"{element.path}.{found.kind}"
    below = element.below(found.kind)
    own = below.below("template") if below is not None else None
    base = context.spec.raw.get("template")
    template: ApplicationTemplate | None = None
    for number, params in enumerate(found.rows):
        row = Row(origin, number, params)
        try:
            if template is None:
                merged = merged_template(own.raw if own is not None else None, base)
                template = ApplicationTemplate(merged, context.renderer, context.appset, element.raw, result.kept)
            rendered = template.render(params)
            result.size += rendered.size
            if result.size > MAX_SIZE:
                raise GenerationError(f"the Applications of the set have more than {MAX_SIZE} bytes; split the set")
            result.made.append(Made(rendered.app, row))
        except RenderError as error:
            result.failures.append(Failure(TEMPLATE, str(error), origin, row))
