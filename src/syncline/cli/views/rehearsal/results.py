"""The results of scenarios: a table with what failed, JUnit, and Markdown for a pull request. Values in, text out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from syncline.cli.frame.output import table
from syncline.cli.frame.terminal import one_cell, plain
from syncline.cli.views.rehearsal.documents import attribute, fenced, inline
from syncline.cli.views.rehearsal.text import describe_answer, offset
from syncline.rehearsal.testing.running import Result


def describe_results(results: Sequence[Result], *, show: bool = False) -> str:
    """Return the table, then each failure; ``show``: the whole answer of each, too."""
    headers = ("RESULT", "SCENARIO", "SEED", "VERDICT", "DONE", "FILE")
    parts = [table(headers, [_row(result) for result in results])]
    parts += [describe_failure(result) for result in results if not result.passed]
    if show:
        parts += [f"{_title(each)}\n{describe_answer(each.answer)}" for each in results if each.answer is not None]
    return "\n\n".join([*parts, summary(results)])


def summary(results: Sequence[Result]) -> str:
    """Return ``2 passed, 1 failed``."""
    passed = sum(result.passed for result in results)
    counts = ((passed, "passed"), (len(results) - passed, "failed"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _row(result: Result) -> tuple[str, ...]:
    answer = result.answer
    verdict, done = (str(answer.outcome), offset(answer.done_s)) if answer is not None else ("", "")
    return ("passed" if result.passed else "FAILED", result.name, str(result.seed), verdict, done, result.file)


def _title(result: Result) -> str:
    return f"{result.name} (seed {result.seed})"


def describe_failure(result: Result) -> str:
    """Return why a scenario failed, and how to play it again."""
    return "\n".join(_failed(result))


def _failed(result: Result) -> Iterator[str]:
    yield one_cell(f"FAILED  {_title(result)}")
    if result.error:
        yield one_cell(f"  {result.error}")
    for failure in result.failures:
        yield one_cell(f"  {failure.where}: {failure.wanted}")
        yield one_cell(f"    found: {failure.found}")
        if failure.around:
            yield "    around it:"
            yield from (one_cell(f"      {line}") for line in failure.around)
    yield one_cell(f"  again: {replay(result)}")


def replay(result: Result) -> str:
    """Return the command that plays it again, with its whole answer."""
    words = ("syncline", "test", result.file, "--filter", result.name, "--seed", str(result.seed), "--show")
    return shlex.join(words)


def junit_results(results: Sequence[Result]) -> str:
    """Return a test suite with a case for each scenario and seed. A scenario that cannot be played is an error."""
    failed = sum(bool(result.failures) for result in results)
    errors = sum(bool(result.error) for result in results)
    head = f'<testsuite name="syncline test" tests="{len(results)}" failures="{failed}" errors="{errors}">'
    cases = "".join(_case(result) for result in results)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{cases}</testsuite>\n'


def _case(result: Result) -> str:
    name = f"{result.name}[{result.seed}]"
    done = result.answer.played_s if result.answer is not None else 0.0
    head = f'  <testcase classname={attribute(result.file)} name={attribute(name)} time="{done:g}"'
    body = [f"    <error message={attribute(result.error)}/>\n"] if result.error else []
    body += [
        f"    <failure message={attribute(f'{one.where}: {one.wanted}: {one.found}')}/>\n" for one in result.failures
    ]
    return f"{head}>\n{''.join(body)}  </testcase>\n" if body else f"{head}/>\n"


def markdown_results(results: Sequence[Result]) -> str:
    """Return the summary for a pull request; nothing in it becomes markup, a mention or a link."""
    return "\n".join(_markdown(results)) + "\n"


def _markdown(results: Sequence[Result]) -> Iterator[str]:
    good = all(result.passed for result in results)
    yield f"## {'✅' if good else '❌'} Scenarios: {summary(results)}"
    yield "\n| | Scenario | Seed | Verdict | Done |\n|---|---|---|---|---|"
    for result in results:
        _, name, seed, verdict, done, _file = _row(result)
        yield f"| {'✅' if result.passed else '❌'} | {inline(name)} | {seed} | {verdict} | {done} |"
    for result in results:
        if not result.passed:
            yield "\n<details><summary>Failed</summary>\n"
            yield from fenced("text", plain(describe_failure(result)))
            yield "\n</details>"
