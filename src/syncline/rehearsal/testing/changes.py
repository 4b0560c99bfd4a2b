"""Reads what happens in a scenario and when: :func:`happenings`. Commits are resolved to the files that they leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from syncline.cluster.machines.kubelet.power import POWER, Switch
from syncline.kube.objects import Obj, name_of, namespace_of
from syncline.kube.yaml.loading import YamlError, load_all
from syncline.rehearsal.cures.editing import REMOVED, Edit, edited
from syncline.rehearsal.fields import Field
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.paths import keys_of, place_of
from syncline.rehearsal.repository import files_at
from syncline.rehearsal.scenario import Delete, Patching
from syncline.rehearsal.testing.case import Acts, Change, Commit, Happening, State, Strike, Sync, Terminate
from syncline.rehearsal.testing.expectations import moment, once
from syncline.rehearsal.testing.mishaps import mishap

MAX_HAPPENINGS = 200
MAX_EDITS = 200
MAX_KEYS = 40
MAX_AT = timedelta(days=7)
COMMIT = ("folder", "revision", "files", "set", "remove")
Below = Callable[[Field], Path]
"""Returns the place that a field names; it raises ScenarioError for one that is not in the tested folder."""


def happenings(at: Field, files: Files, before: Files | None, folder: Path, below: Below) -> tuple[Happening, ...]:
    """Return what happens, in order of time. ``files``: of the first commit; ``before``: what was deployed until then;
    ``folder``: of the repository. Raises ScenarioError."""
    entries = at.each()
    if len(entries) > MAX_HAPPENINGS:
        raise at.wrong(f"{len(entries)} entries", f"at most {MAX_HAPPENINGS}")
    timed = sorted(((_at(one), one) for one in entries), key=lambda each: each[0])  # with once: in the file's order
    history = [files] if before is None else [before, files]
    found: list[Happening] = []
    for when, one in timed:
        word = _word(one)
        if word == "commit":
            history.append(_committed(one["commit"], history[-1], folder, below))
        elif word == "rollback":
            if not one["rollback"].flag():
                raise one["rollback"].wrong(repr(one["rollback"].value), "true")
            if len(history) < 2:
                raise one.wrong("a rollback of the first commit", "deployed: what was there before, or a commit before")
            history.append(history[-2])
        text = json.dumps({word: one[word].value}, default=str)
        if word == "fault":
            found += _faults(one, when, text)
            continue
        change = CHANGES[word](one[word]) if word in CHANGES else Commit(history[-1])
        found.append(Happening(when, one.where, text, change, _once(one)))
    return tuple(sorted(found, key=lambda each: each.at))


def _faults(one: Field, when: timedelta, text: str) -> tuple[Happening, ...]:
    """Return the fault, and that it heals."""
    struck, lasts = mishap(one["fault"])
    waited = _once(one)
    heals = None
    if lasts is not None:
        heals = Happening(when + lasts, one.where, f"{text} heals", Strike(struck, heals=True))
    if waited is not None:
        return (Happening(when, one.where, text, Strike(struck), waited, heals),)
    fault = Happening(when, one.where, text, Strike(struck))
    return (fault,) if heals is None else (fault, heals)


def _once(one: Field) -> State | None:
    return None if one["once"].value is None else once(one["once"])


def _at(one: Field) -> timedelta:
    one.known("at", "once", *WORDS)
    if one["once"].value is not None and (one["at"].value is not None or {"commit", "rollback"} & set(one.map())):
        raise one["once"].wrong("once with at, commit or rollback", "at for a commit, and one of at and once")
    when = moment(one["at"]) if one["at"].value is not None else timedelta(0)
    if when > MAX_AT:
        raise one["at"].wrong(repr(one["at"].value), "at most 168h")
    return when


def _word(one: Field) -> str:
    words = [word for word in WORDS if word in one.map()]
    if len(words) != 1:
        raise one.wrong(", ".join(words) or "nothing that happens", f"one of {', '.join(WORDS)}")
    return words[0]


# -- commits -----------------------------------------------------------------------------------------------------------


def changed_files(at: Field, files: Files, below: Below) -> Files:
    """Return the files with the edits of ``folder``, ``files``, ``set`` and ``remove``."""
    if at["folder"].value is not None:
        laid = read_files(below(at["folder"]))
        files = Files({**files.content, **laid.content}, {**files.links, **laid.links})
    texts = at["files"].map()
    for path, text in texts.items():
        if not isinstance(text, str) or str(path).startswith("/") or ".." in str(path).split("/"):
            raise at["files"].wrong(repr(path), "texts by paths in the repository")
    files = files.changed({str(path): text for path, text in texts.items()})
    edits = at["set"].each()
    if len(edits) > MAX_EDITS:
        raise at["set"].wrong(f"{len(edits)} edits", f"at most {MAX_EDITS}")
    for one in edits:
        files = _edited(one.known("file", "object", "fields"), files)
    for one, path in zip(at["remove"].each(), at["remove"].texts(), strict=True):
        kept = {name: data for name, data in files.content.items() if name != path and not name.startswith(f"{path}/")}
        if len(kept) == len(files.content):
            raise one.wrong(repr(path), "a file or folder of the repository")
        files = replace(files, content=kept)
    return files


def _committed(at: Field, files: Files, folder: Path, below: Below) -> Files:
    at.known(*COMMIT)
    if not at.map():
        raise at.wrong("nothing", f"one or more of {', '.join(COMMIT)}")
    if at["revision"].value is not None:
        files = files_at(folder, at["revision"].text())
    return changed_files(at, files, below)


def _edited(at: Field, files: Files) -> Files:
    path = at.needed("file", "the path of a file of the repository")
    if path not in files.content:
        raise at["file"].wrong(repr(path), "a file of the repository")
    text = files.text(path)
    try:
        documents = [each.value for each in load_all(text.encode(), file=path).documents]
    except YamlError as error:
        raise at["file"].wrong(repr(path), f"a file of plain YAML: {error}") from error
    number = _document(at, documents)
    for name, value in at["fields"].map().items():
        if len(keys_of(str(name))) > MAX_KEYS:
            raise at["fields"].wrong(f"{str(name)[:80]}…", f"a path of at most {MAX_KEYS} keys")
        place = _place(documents[number], str(name))
        edit = Edit(path, number, place, REMOVED if value is None else value)
        try:
            text = edited(text, edit)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise at["fields"].wrong(repr(name), "a field of the document, such as spec.replicas") from error
    return files.changed({path: text})


def _document(at: Field, documents: list[Any]) -> int:
    """Return the number of the document that ``object`` names; the only one if it names none."""
    named = at["object"]
    if named.value is None:
        if len(documents) != 1:
            raise at.wrong(f"{len(documents)} documents in the file", "object: KIND/NAME, to say which one")
        return 0
    kind, *space, name = named.target().split("/")
    for number, document in enumerate(documents):
        if isinstance(document, dict) and _is(document, kind, space, name):
            return number
    raise named.wrong(repr(named.value), "an object of the file")


def _is(document: Obj, kind: str, space: list[str], name: str) -> bool:
    same = str(document.get("kind")).lower() == kind.lower() and name_of(document) == name
    return same and (not space or namespace_of(document) == space[0])


def _place(document: Any, path: str) -> tuple[str | int, ...]:
    """Return the keys of a path, with those of lists as indices."""
    found: list[str | int] = []
    at = document
    for key in keys_of(path):
        place = place_of(at, key)
        found.append(key if place is None else place)
        at = None if place is None else at[place]
    return tuple(found)


# -- acts --------------------------------------------------------------------------------------------------------------


def _delete(at: Field) -> Change:
    return Acts((Delete(at.target()),))


def _patch(at: Field) -> Change:
    at.known("object", "with")
    return Acts((Patching(at["object"].target(), at["with"].map()),))


def _pool(paused: bool) -> Callable[[Field], Change]:
    return lambda at: Acts((Patching(f"MachineConfigPool/{_name(at)}", {"spec": {"paused": paused}}),))


def _node(power: Switch) -> Callable[[Field], Change]:
    body = {"metadata": {"annotations": {POWER: str(power)}}}
    return lambda at: Acts((Patching(f"Node/{_name(at)}", body),))


def _name(at: Field) -> str:
    if not isinstance(at.value, str) or not at.value or "/" in at.value:
        raise at.wrong(repr(at.value), "a name")
    return at.value


CHANGES: Mapping[str, Callable[[Field], Change]] = {
    "delete": _delete,
    "patch": _patch,
    "pause": _pool(True),
    "resume": _pool(False),
    "nodeOff": _node(Switch.OFF),
    "nodeOn": _node(Switch.ON),
    "sync": lambda at: Sync(_name(at)),
    "terminate": lambda at: Terminate(_name(at)),
}
WORDS = ("commit", "rollback", "fault", *CHANGES)
"""What may happen."""
