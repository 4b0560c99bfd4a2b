"""The answer of a rehearsal as Markdown for a pull request, as a page, and as JUnit. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from xml.sax.saxutils import quoteattr

from syncline.cli.frame.terminal import one_cell, plain
from syncline.cli.views.rehearsal.picture import draw_answer
from syncline.cli.views.rehearsal.text import describe_answer, offset
from syncline.rehearsal.answer.answer import Answer, Outcome

ICONS = {Outcome.SAFE: "✅", Outcome.FAILED: "❌", Outcome.BLOCKED: "⛔", Outcome.UNSAFE: "⚠️"}
MAX_WAITS = 5
PAGE_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;
color-scheme:light dark}pre{overflow-x:auto;font-size:13px}svg{max-width:100%;height:auto}.plus{color:#2e7d4f}
.minus{color:#c0392b}"""


def markdown_answer(answer: Answer, whole: str = "") -> str:
    """Return the summary for a pull request; nothing in it becomes markup, a mention or a link. ``whole``: the text of
    all of it, instead of that of the answer."""
    return "\n".join(_markdown(answer, whole or describe_answer(answer))) + "\n"


def _markdown(answer: Answer, whole: str) -> Iterator[str]:
    yield f"## {ICONS[answer.outcome]} Rehearsal {answer.outcome}: {inline(answer.headline)}"
    if answer.advice:
        yield ""
        yield f"**Do:** {inline(answer.advice)}"
    lasting = [wait for wait in answer.waits if wait.until_s is None]
    if lasting:
        yield "\n### What waits for ever" if answer.outcome is Outcome.BLOCKED else "\n### What still waits"
        for wait in lasting[:MAX_WAITS]:
            yield ""
            yield from (f"{'  ' * depth}- {inline(link)}" for depth, link in enumerate(wait.chain))
    if answer.breaches:
        yield "\n### Broken laws\n"
        for breach in answer.breaches:
            yield f"- `{breach.law}` at {offset(breach.at_s)}: {inline(breach.found)}"
    if answer.outages:
        yield "\n| Unavailable | From | Until | Ready |\n|---|---|---|---|"
        for each in answer.outages:
            cells = (inline(each.subject), offset(each.since_s), offset(each.until_s), f"{each.least} of {each.had}")
            yield f"| {' | '.join(cells)} |"
    for cure in answer.cures:
        if cure.proved:
            yield f"\n<details><summary>Cure: {escape(one_cell(cure.text))}, rehearsed: {cure.outcome}</summary>\n"
            yield from fenced("diff", cure.diff)
            yield "\n</details>"
    yield "\n<details><summary>Timeline and all it assumes</summary>\n"
    yield from fenced("text", whole)
    yield "\n</details>"


def inline(text: str) -> str:
    """Return the text as inline code, which no character of it ends."""
    flat = one_cell(text).replace("|", "¦")
    longest = max((len(run) for run in _runs(flat)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {flat} {ticks}" if longest else f"`{flat}`"


def _runs(text: str) -> list[str]:
    return [part for part in "".join(c if c == "`" else " " for c in text).split(" ") if part]


def fenced(language: str, text: str) -> Iterator[str]:
    fence = "`" * max(3, 1 + max((len(run) for run in _runs(text)), default=0))
    yield f"{fence}{language}"
    yield plain(text).rstrip("\n")
    yield fence


def html_answer(answer: Answer, whole: str = "") -> str:
    """Return a page without scripts, links and anything to load. ``whole``: as for :func:`markdown_answer`."""
    title = escape(one_cell(f"{str(answer.outcome).upper()} {answer.name}"))
    cures = "".join(
        f"<h2>Cure: {escape(one_cell(cure.text))}</h2><pre>{_coloured(cure.diff)}</pre>"
        for cure in answer.cures
        if cure.proved
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{PAGE_STYLE}</style></head><body>\n"
        f"<h1>{title}</h1>\n<p>{escape(one_cell(answer.headline))}</p>\n"
        f"<p><b>{escape(one_cell(answer.advice))}</b></p>\n{draw_answer(answer)}{cures}\n"
        f"<h2>All of it</h2>\n<pre>{escape(plain(whole or describe_answer(answer)))}</pre>\n</body></html>\n"
    )


def _coloured(diff: str) -> str:
    kinds = {"+": "plus", "-": "minus"}
    lines = []
    for line in plain(diff).splitlines():
        kind = kinds.get(line[:1])
        lines.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return "\n".join(lines)


def junit_answer(answer: Answer) -> str:
    """Return a test suite: one case for the end, one for each law."""
    broken = {breach.law: f"{breach.found} at {offset(breach.at_s)}" for breach in answer.breaches}
    ends = {"ends": answer.headline} if answer.outcome in (Outcome.FAILED, Outcome.BLOCKED) else {}
    found = ends | broken
    cases = "".join(_case(answer.name, name, found.get(name, "")) for name in ("ends", *answer.checked))
    count = 1 + len(answer.checked)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name={attribute(f"rehearse {answer.name}")} tests="{count}" failures="{len(found)}" '
        f'time="{answer.played_s:g}">\n{cases}</testsuite>\n'
    )


def _case(suite: str, name: str, failure: str) -> str:
    head = f"  <testcase classname={attribute(suite)} name={attribute(name)}"
    return f"{head}><failure message={attribute(failure)}/></testcase>\n" if failure else f"{head}/>\n"


def attribute(text: str) -> str:
    return quoteattr(one_cell(text))
