"""``--resource``, ``--label`` and ``--project`` of ``app sync`` and ``app wait``: select objects and Applications.
Rules: Argo CD ``cmd/util/common`` and ``cmd/argocd/commands`` (``ParseSelectedResources``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj, dig, gvk_of, labels_of, name_of, namespace_of

ANY = "*"


def selected(text: str) -> Obj:
    """Parse ``[!]GROUP:KIND:[NAMESPACE/]NAME`` into the form of an operation; an empty part or ``*`` matches any."""
    parts = text.removeprefix("!").split(":")
    if len(parts) != 3:
        raise CommandFailed(f"--resource {text!r}: write GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME", USAGE)
    namespace, _, name = parts[2].rpartition("/")
    found: Obj = {"group": parts[0], "kind": parts[1], "name": name}
    found |= {"namespace": namespace} if namespace else {}
    return found | ({"exclude": True} if text.startswith("!") else {})


def expanded(app: Obj, wanted: Sequence[Obj]) -> list[Obj]:
    """Replace globs and exclusions, which operations lack, by the Application's matching objects. Raises CommandFailed
    if none matches."""
    if not any(one.get("exclude") or not one["kind"] or ANY in "".join(map(str, one.values())) for one in wanted):
        return list(wanted)
    rows = [row for row in dig(app, "status", "resources", default=[]) if is_selected(row, wanted)]
    if not rows:
        raise CommandFailed(f"--resource: application '{name_of(app)}' has no such resource in its status")
    return [{part: row[part] for part in ("group", "kind", "name", "namespace") if row.get(part)} for row in rows]


def is_selected(row: Obj, wanted: Sequence[Obj]) -> bool:
    """Return whether an object of ``status.resources`` is selected and not excluded."""
    named = [one for one in wanted if not one.get("exclude")]
    refused = [one for one in wanted if one.get("exclude")]
    return (not named or any(_fits(row, one) for one in named)) and not any(_fits(row, one) for one in refused)


def _fits(row: Obj, wanted: Obj) -> bool:
    parts = ("group", "kind", "name", *(("namespace",) if wanted.get("namespace") else ()))
    return all(
        (part != "group" and not wanted.get(part)) or fnmatchcase(str(row.get(part) or ""), str(wanted.get(part) or ""))
        for part in parts
    )


def labelled(objects: Iterable[Obj], labels: Sequence[str]) -> list[Obj]:
    """Return the objects with all labels ``KEY=VALUE``, for an operation. Raises CommandFailed for none."""
    pairs: dict[str, str] = {}
    for text in labels:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandFailed(f"--label {text!r}: write KEY=VALUE", USAGE)
        pairs[key] = value
    found = [_named(one) for one in objects if pairs.items() <= labels_of(one).items()]
    if not found:
        raise CommandFailed(f"No matching resources found for labels: {', '.join(labels)}")
    return found


def _named(obj: Obj) -> Obj:
    namespace: dict[str, Any] = {"namespace": namespace_of(obj)} if namespace_of(obj) else {}
    return {"group": gvk_of(obj).group, "kind": gvk_of(obj).kind, "name": name_of(obj)} | namespace
