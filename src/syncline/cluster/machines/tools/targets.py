"""Select the objects of a command line: ``TYPE NAME…``, ``TYPE/NAME``, ``TYPE -l SELECTOR``, ``-f FILE``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from syncline.cluster.machines.tools.arguments import Arguments
from syncline.cluster.machines.tools.steps import CommandError, Session, Steps
from syncline.kube import client
from syncline.kube.objects import Obj, ResourceInfo, name_of, namespace_of
from syncline.kube.yaml.loading import YamlError, load_all

MAX_DOCUMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """One object to act on."""

    info: ResourceInfo
    namespace: str
    name: str

    def __str__(self) -> str:
        return display(self.info, self.name)


def display(info: ResourceInfo, name: str) -> str:
    """Return an object's name in results: ``deployment.apps/web``."""
    kind = info.kind.lower()
    return f"{kind}.{info.group}/{name}" if info.group else f"{kind}/{name}"


def namespace_of_command(session: Session, arguments: Arguments) -> str:
    return arguments.get("namespace") or session.namespace


def named(session: Session, arguments: Arguments, words: list[str]) -> Steps[list[Target]]:
    """Return objects by name; raise CommandError for missing or mixed names."""
    if not words:
        raise CommandError("error: resource(s) were provided, but no name was specified")
    namespace = namespace_of_command(session, arguments)
    if any("/" in word for word in words):
        found = []
        for word in words:
            kind, slash, name = word.partition("/")
            if not slash or not name or not kind:
                raise CommandError("error: there is no need to specify a resource type as a separate argument")
            found.append(_target((yield from session.resource(kind)), namespace, name))
        return found
    kinds = yield from session.resources(words[0])
    if len(words) == 1:
        raise CommandError("error: resource(s) were provided, but no name was specified")
    return [_target(info, namespace, name) for info in kinds for name in words[1:]]


def _target(info: ResourceInfo, namespace: str, name: str) -> Target:
    return Target(info, namespace if info.namespaced else "", name)


def selected(session: Session, arguments: Arguments, kinds: str) -> Steps[list[Target]]:
    """Return objects by selector, or all of a type."""
    namespace = "" if arguments.on("all-namespaces") else namespace_of_command(session, arguments)
    found = []
    for kind in kinds.split(","):
        info = yield from session.resource(kind)
        answer = yield client.list_(
            info,
            namespace if info.namespaced else "",
            label_selector=arguments.get("selector"),
            field_selector=arguments.get("field-selector"),
        )
        found += [Target(info, namespace_of(item), name_of(item)) for item in answer.or_raise().get("items") or ()]
    return found


def targets_of(session: Session, arguments: Arguments, words: list[str]) -> Steps[list[Target]]:
    """Return objects by file, name or selector, whichever is given."""
    if arguments.all("filename"):
        found = []
        for obj in manifests(session, arguments):
            info = yield from session.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
            namespace = namespace_of(obj) or namespace_of_command(session, arguments)
            found.append(_target(info, namespace, name_of(obj)))
        return found
    if arguments.get("selector") or arguments.on("all") or arguments.get("field-selector"):
        if len(words) != 1:
            raise CommandError("error: name cannot be provided when a selector is specified")
        return (yield from selected(session, arguments, words[0]))
    return (yield from named(session, arguments, words))


def manifests(session: Session, arguments: Arguments) -> Iterator[Obj]:
    """Yield the objects of all ``-f`` files in order, lists expanded; raise CommandError."""
    names = [name for given in arguments.all("filename") for name in given.split(",")]
    if not names:
        raise CommandError("error: must specify one of -f and -k")
    count = 0
    for name in names:
        for value in _documents(session, name):
            items = value.get("items") if str(value.get("kind", "")).endswith("List") else None
            for obj in items if isinstance(items, list) else [value]:
                count += 1
                if count > MAX_DOCUMENTS:
                    raise CommandError(f"error: more than {MAX_DOCUMENTS} objects in the files given")
                yield obj


def _documents(session: Session, name: str) -> list[Any]:
    try:
        loaded = load_all(session.read(name), file=name)
    except OSError as error:
        raise CommandError(f'error: the path "{name}" cannot be read: {error.strerror}') from error
    except YamlError as error:
        raise CommandError(f"error: error parsing {name}: {error}") from error
    if loaded.report.errors:
        raise CommandError(f"error: error parsing {name}: {loaded.report.errors[0]}")
    values = [value for value in loaded.values if value is not None]
    for value in values:
        if not isinstance(value, dict) or not value.get("kind") or not value.get("apiVersion"):
            raise CommandError(f"error: {name}: an object needs apiVersion and kind")
    return values
