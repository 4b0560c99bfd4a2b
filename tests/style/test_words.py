"""Words that docs/words.md keeps out of code, messages and documents, each with the words to use instead."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BANNED = {
    "told": "reported, notified, or the content: message, events, cause",
    "untold": "unreported",
    "nobody": "the party that does not act: no client, no controller; or the passive",
    "somebody": "the party: a user, another client, the owner",
    "whoever": "the party: the caller, the client that",
    "anew": "again, or the verb with re-: rewritten, recreated",
    "errand": "computation, read",
    "outcall": "outbound call",
    "performer": "handler",
    "deed": "change, step",
}
WORDS = re.compile(rf"(?<![a-z])({'|'.join(BANNED)})s?(?![a-z])", re.IGNORECASE)
EXCEPTIONS = {
    "src/syncline/cluster/machines/sandbox/root.py": {"nobody"},  # the user of /etc/passwd
    "src/syncline/sources/ansible/skeleton.py": {"nobody"},
    "src/syncline/machineconfig/drain/progress.py": {"anew"},  # the key of an annotation that stands on nodes
}


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT):
            yield token.start[0], token.string


def test_code_messages_and_documents_use_the_words_of_the_field() -> None:
    files = [*(ROOT / "src" / "syncline").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    found = []
    for path in sorted(files):
        name = path.relative_to(ROOT).as_posix()
        for line, text in _texts(path):
            for match in WORDS.finditer(text):
                word = match[1].lower()
                if word not in EXCEPTIONS.get(name, set()):
                    found.append(f"{name}:{line} {word!r}: write {BANNED[word]}")
    assert not found, "\n".join(found)


def test_the_rule_finds_banned_words_in_names_and_prose() -> None:
    for text in ("is told", "_told", "MAX_TOLD", "nobody_waits", "Whoever", "errands"):
        assert WORDS.search(text), text
    for text in ("indeed", "stolder", "beanewline"):
        assert not WORDS.search(text), text
