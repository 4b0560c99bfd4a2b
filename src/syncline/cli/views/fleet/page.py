"""The report of ApplicationSets as one HTML page. :func:`report_page`.

The page needs nothing else: no address is in it, its style and its few lines of script are allowed by their hashes, and
without the script it only lacks the filter. Every text goes through ``xml.etree``, which escapes it, after
:func:`~syncline.cli.frame.terminal.plain`, which shows control characters and marks of direction as escapes.

The page is bounded whatever clusters report: each text, each row, and all rows together (:data:`MAX_TEXT`). Tables have
captions, row headers and, on a narrow screen, the name of each value, for people who see a part of it or hear it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from syncline.base.cause import OR, Cause
from syncline.base.clock import format_time
from syncline.cli.frame.terminal import plain
from syncline.cli.views.fleet.setreport import cut, place_of, silence, summary_line, title
from syncline.explain.fleet.applications import NEEDS_AGENT, URGENT, ApplicationState, Failure, Standing
from syncline.explain.fleet.setreport import SetReport
from syncline.kube.objects import ObjectRef, name_of
from syncline.views.applications import short_revision
from syncline.views.texts import age

MAX_MESSAGE: Final = 32_768
"""Characters of a message, as in an ApplicationReport."""
MAX_FAILURES: Final = 200
"""Failures of one cluster; ``-o json`` has all."""
MAX_ROWS: Final = 5000
"""Rows of a page; a browser still scrolls it."""
MAX_ROW: Final = 200_000
"""Characters of the causes of one row."""
MAX_TEXT: Final = 5_000_000
"""Characters of all causes; rows after that have the first cause of each, cut."""
MAX_BRIEF: Final = 300
"""Characters of a cause where there is no more room."""
MAX_VALUE: Final = 64
"""Characters of a status or a phase."""
MAX_SHORT: Final = 24
"""Characters of a value up to which its cell is not broken into lines."""
MAX_DEPTH: Final = 10
MAX_CAUSE: Final = 4_096
"""Characters of one cause of a chain."""
COLUMNS: Final = ("Cluster", "Application", "Sync", "Health", "Operation", "Revision", "Since", "Cause")
STYLE: Final = """
:root { color-scheme: light dark; --bad: #b3261e; --soft: #8a6100; --good: #1e6b34; --line: #d5d9e0; --dim: #5b6472;
  --back: #ffffff; --fore: #1a1d23; --head: #f3f5f8; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --soft: #f2c14e; --good: #7ed491; --line: #3a414d;
  --dim: #a3adbb; --back: #14171c; --fore: #e8eaee; --head: #1e232b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 96rem; padding: 1.5rem; background: var(--back); color: var(--fore);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .2rem; }
p { margin: .2rem 0 .8rem; } .dim { color: var(--dim); }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; margin: .6rem 0 1rem; padding: 0; }
.counts li { border: 1px solid var(--line); border-radius: .4rem; padding: .25rem .7rem; }
.counts b { font-size: 1.15rem; margin-right: .35rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th { background: var(--head); font-weight: 600; white-space: nowrap; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
tbody th { background: none; font-weight: inherit; white-space: normal; min-width: 6rem; }
tbody th, td { overflow-wrap: anywhere; }
td.short { white-space: nowrap; overflow-wrap: normal; }
td.cause { min-width: 20rem; width: 50%; } td.cause p { margin: 0 0 .3rem; }
bdi, pre { unicode-bidi: isolate; }
pre { margin: .3rem 0; padding: .5rem .6rem; background: var(--head); border-radius: .3rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.4 ui-monospace, monospace; max-height: 24rem; overflow: auto; }
details { margin: .1rem 0; } summary { cursor: pointer; }
ul.chain { margin: .2rem 0; padding-left: 1.1rem; }
.bad { color: var(--bad); } .soft { color: var(--soft); } .good { color: var(--good); }
tr.silent td, tr.silent th { color: var(--dim); font-style: italic; }
:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.filter { margin: .8rem 0; } .filter[hidden] { display: none; }
.filter input, .filter select { font: inherit; padding: .3rem .5rem; margin-right: .5rem; color: inherit;
  background: var(--back); border: 1px solid var(--line); border-radius: .3rem; }
@media print { body { max-width: none; padding: 0; font-size: 11px; } .filter { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  pre { max-height: none; overflow: visible; } tr { break-inside: avoid; } thead { display: table-header-group; } }
@media (max-width: 50rem) { thead { display: none; }
  tbody th, td { display: block; border: 0; padding: .1rem .6rem; } tbody th { font-weight: 600; }
  td::before { content: attr(data-label) ": "; color: var(--dim); }
  td.cause { min-width: 0; width: auto; } td.short { display: inline-block; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0; } }
[hidden] { display: none !important; }
"""
SCRIPT: Final = """
var box = document.getElementById('filter'), text = document.getElementById('text'),
  standing = document.getElementById('standing'), shown = document.getElementById('shown');
function show() {
  var wanted = text.value.toLowerCase(), count = 0, rows = document.querySelectorAll('tbody tr');
  rows.forEach(function (row) {
    var right = !standing.value || row.dataset.standing === standing.value;
    row.hidden = !(right && row.textContent.toLowerCase().indexOf(wanted) >= 0);
    count += row.hidden ? 0 : 1;
  });
  shown.textContent = count + ' of ' + rows.length + ' rows';
}
box.hidden = false;
text.addEventListener('input', show);
standing.addEventListener('change', show);
"""
_COUNTS: Final = (
    ("clusters", "clusters", ""),
    ("healthy", "healthy", "good"),
    ("notHealthy", "not healthy", "bad"),
    ("inProgress", "in progress", "soft"),
    ("synced", "synced", "good"),
    ("notSynced", "not synced", "soft"),
    ("silent", "not reporting", "bad"),
    ("missing", "without an Application that runs", "bad"),
)
_TONES: Final = {
    "Healthy": "good",
    "Synced": "good",
    "Succeeded": "good",
    "Degraded": "bad",
    "Missing": "bad",
    "Failed": "bad",
    "Error": "bad",
    "OutOfSync": "soft",
    "Progressing": "soft",
    "Running": "soft",
}


def report_page(reports: Sequence[SetReport]) -> str:
    """Return the page, a whole document."""
    page = Element("html", lang="en")
    head = SubElement(page, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy()})
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    SubElement(head, "meta", name="referrer", content="no-referrer")
    name = title(reports[0]) if len(reports) == 1 else "ApplicationSets"
    _text(SubElement(head, "title"), f"Report: {name}")
    SubElement(head, "style").text = STYLE
    whole = SubElement(page, "body")
    body = SubElement(whole, "main")
    _text(SubElement(body, "h1"), name)
    if reports:
        _text(SubElement(body, "p", {"class": "dim"}), f"As of {format_time(reports[0].now)}")
    _filter(body)
    room = MAX_TEXT
    for one in reports:
        if len(reports) > 1:
            _text(SubElement(body, "h2"), title(one))
        room = _report(body, one, room)
    SubElement(whole, "script").text = SCRIPT
    return f"<!doctype html>\n{tostring(page, encoding='unicode', method='html')}\n"


def policy() -> str:
    """Return the Content-Security-Policy: nothing is loaded, and only the style and the script of the page count."""
    found = {
        key: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for key, text in (("style", STYLE), ("script", SCRIPT))
    }
    return (
        f"default-src 'none'; style-src 'sha256-{found['style']}'; script-src 'sha256-{found['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _text(parent: Element, text: str) -> Element:
    """Add the text, in a direction of its own; what a terminal or a browser would act on is shown as an escape."""
    SubElement(parent, "bdi").text = plain(text[:MAX_MESSAGE]).replace("\r", "")
    return parent


def _filter(body: Element) -> None:
    """Add the filter, hidden until the script is there for it."""
    box = SubElement(body, "div", {"class": "filter", "id": "filter", "hidden": "hidden"})
    label = SubElement(box, "label")
    label.text = "Show "
    chosen = SubElement(label, "select", id="standing")
    SubElement(chosen, "option", value="").text = "all"
    for one in Standing:
        SubElement(chosen, "option", value=str(one)).text = str(one)
    also = SubElement(box, "label")
    also.text = "with "
    SubElement(also, "input", {"id": "text", "type": "search", "placeholder": "a word"})
    SubElement(box, "span", {"id": "shown", "class": "dim", "role": "status"})


def _report(body: Element, report: SetReport, room: int) -> int:
    """Add a report; return how much room is left for causes."""
    counts = report.counts
    listed = SubElement(body, "ul", {"class": "counts"})
    for key, word, tone in _COUNTS:
        if counts[key] or key in ("clusters", "healthy", "synced"):
            item = SubElement(listed, "li")
            number = SubElement(item, "b", {"class": tone if counts[key] else ""})
            number.text, number.tail = str(counts[key]), word
    unsure = summary_line(report).partition("; ")[2]
    if unsure:
        _text(SubElement(body, "p", {"class": "dim"}), unsure)
    table = SubElement(body, "table")
    _text(SubElement(table, "caption"), f"{title(report)}: each cluster, the most urgent first")
    row = SubElement(SubElement(table, "thead"), "tr")
    ordered = any(one.ordered is not None for one in report.rows)
    for name in (*COLUMNS[:-1], *(("Wave", "Release") if ordered else ()), COLUMNS[-1]):
        SubElement(row, "th", scope="col").text = name
    rows = SubElement(table, "tbody")
    for one in report.rows[:MAX_ROWS]:
        room -= _row(rows, one, report.now, ordered=ordered, brief=room <= 0)
    if room <= 0:
        _text(SubElement(body, "p"), "Causes are cut: they are too long for one page (-o json has all)")
    if len(report.rows) > MAX_ROWS:
        _text(SubElement(body, "p"), f"… and {len(report.rows) - MAX_ROWS} more rows (-o json has all)")
    return room


def _row(rows: Element, one: ApplicationState, now: datetime, *, ordered: bool, brief: bool) -> int:
    """Add a row; return the characters of its causes. ``brief``: without room for more than the first one."""
    silent = one.standing is Standing.SILENT
    row = SubElement(rows, "tr", {"class": str(one.standing), "data-standing": str(one.standing)})
    _text(SubElement(row, "th", scope="row"), cut(one.cluster, 253))
    _cell(row, "Application", cut(name_of(one.app), 253) if one.app is not None else "–", "")
    unknown = one.app is None or (one.problem is not None and one.sync == "Unknown")
    for word, given in (("Sync", one.sync), ("Health", one.health), ("Operation", one.operation.get("phase") or "")):
        value = cut(given, MAX_VALUE)
        shown = "–" if unknown or not value else f"({value})" if silent else value
        _cell(row, word, shown, "" if silent else _TONES.get(value, ""))
    _cell(row, "Revision", cut(short_revision(one.revision), 40) or "–")
    since = SubElement(row, "td", {"class": "short", "data-label": "Since"})
    if one.since:
        moment = format_time(one.since)
        _text(SubElement(since, "time", datetime=moment, title=moment), age(one.since, now))
    else:
        since.text = "–"
    for word, value in zip(("Wave", "Release"), place_of(one) if ordered else (), strict=False):
        _cell(row, word, cut(value, 40))
    cell = SubElement(row, "td", {"class": "cause", "data-label": "Cause"})
    if brief:
        _brief(cell, one, now)
    else:
        _causes(cell, one, now)
    return _length(cell)


def _cell(row: Element, word: str, text: str, tone: str = "") -> None:
    short = "short" if len(text) <= MAX_SHORT and word != "Application" else ""
    _text(SubElement(row, "td", {"class": f"{short} {tone}".strip(), "data-label": word}), text)


def _length(element: Element) -> int:
    return sum(map(len, element.itertext()))


def _brief(cell: Element, one: ApplicationState, now: datetime) -> None:
    """Add the first cause alone."""
    first = next((each.line for each in one.failures), one.problem.message if one.problem is not None else "")
    said = silence(one, now) if one.standing is Standing.SILENT else first
    _text(cell, cut(said, MAX_BRIEF) or "–")


def _causes(cell: Element, one: ApplicationState, now: datetime) -> None:
    if one.standing is Standing.SILENT:
        _text(SubElement(cell, "p", {"class": "bad"}), silence(one, now))
    if one.problem is not None:
        _chain(SubElement(cell, "ul", {"class": "chain"}), one.problem)
    if one.operation.get("phase") == "Running" and one.operation.get("message"):
        _text(SubElement(cell, "p"), one.operation["message"])
    if one.ordered is not None and one.ordered.held is not None:
        _chain(SubElement(cell, "ul", {"class": "chain"}), one.ordered.held)
    for each in one.waits if one.standing is Standing.PROGRESSING else ():
        _text(SubElement(cell, "p"), each.line)
    left = len(one.failures)
    for each in one.failures[:MAX_FAILURES]:
        if _length(cell) > MAX_ROW:
            break
        _failure(cell, each)
        left -= 1
    if left or one.omitted:
        _text(SubElement(cell, "p", {"class": "dim"}), f"{left + one.omitted} more are left out")
    if one.pulled and not one.detailed and one.work is not None and one.standing in URGENT:
        _text(SubElement(cell, "p", {"class": "dim"}), NEEDS_AGENT)
    if not len(cell):
        cell.text = "–"


def _failure(cell: Element, one: Failure) -> None:
    """Add a failure: its first cause, and behind it the whole message and the chain."""
    said = one.message.strip()
    if not one.because and len(one.line) < 300 and said in one.line:
        _text(SubElement(cell, "p", {"class": "bad"}), one.line)
        return
    more = SubElement(cell, "details")
    _text(SubElement(more, "summary", {"class": "bad"}), cut(one.line, MAX_CAUSE))
    if said:
        _text(SubElement(more, "pre", tabindex="0"), cut(said, MAX_MESSAGE))
    if one.because:
        chain = SubElement(more, "ul", {"class": "chain"})
        for each in one.because:
            _chain(chain, each)


def _chain(parent: Element, cause: Cause, depth: int = 0) -> None:
    item = SubElement(parent, "li")
    _text(item, cut(f"{_subject(cause.subject)} {cause.state}: {cause.message}", MAX_CAUSE))
    for way in cause.next_action[:MAX_CAUSE].split(OR) if cause.next_action else ():
        _text(SubElement(item, "div", {"class": "dim"}), f"next: {way}")
    if cause.because and depth < MAX_DEPTH:
        below = SubElement(item, "ul", {"class": "chain"})
        for each in cause.because[:MAX_FAILURES]:
            _chain(below, each, depth + 1)


def _subject(subject: str) -> str:
    """Return ``Pod shop/web-1`` for ``/Pod/shop/web-1``; plain names stay."""
    if subject.count("/") != 3 or " " in subject:
        return subject
    ref = ObjectRef.parse(subject)
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"
