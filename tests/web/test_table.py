"""docs/server.md lists every method of the API: served, or refused with its sentence."""

from __future__ import annotations

from pathlib import Path

from tests.web.serving import parts_of

from syncline.control.manager import DirectPort
from syncline.web.refused import REFUSED
from syncline.web.server import handlers_of
from syncline.web.state import State
from syncline.web.wire.api import methods, upstream_version

DOCUMENT = Path(__file__).parents[2] / "docs" / "server.md"
BEGIN = "<!-- methods -->\n"


def table() -> str:
    state = State(DirectPort(None))  # type: ignore[arg-type]
    served = handlers_of(parts_of(state)).keys()
    count = f"{len(served)} of {len(methods())} methods of Argo CD {upstream_version()}."
    rows = ["| Service | Method | REST | Answer |", "|---|---|---|---|"]
    for method in methods().values():
        routes = ", ".join(f"{route.verb.upper()} `{route.path}`" for route in method.routes)
        answer = "served" if method.path in served else REFUSED.get(method.path, "not served yet")
        rows.append(f"| {method.service.partition('.')[2]} | {method.name} | {routes} | {answer} |")
    return "\n".join([count, "", *rows]) + "\n"


def test_the_document_lists_every_method(update_golden: bool) -> None:
    text, _, found = DOCUMENT.read_text().partition(BEGIN)
    if update_golden:
        DOCUMENT.write_text(text + BEGIN + table())
    else:
        assert found == table(), "run with --update-golden"


def test_what_is_refused_is_not_served() -> None:
    state = State(DirectPort(None))  # type: ignore[arg-type]
    assert not REFUSED.keys() & handlers_of(parts_of(state)).keys()
    assert REFUSED.keys() <= methods().keys()
