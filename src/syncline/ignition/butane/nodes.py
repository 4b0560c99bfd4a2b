"""Adds files, directories and links from trees and quadlets to those of the user: :func:`add_trees`.

Paths are one namespace: an entry of a tree fills an existing empty entry of the same kind; any other is an error.
Source: coreos/butane ``base/v0_8_exp/translate.go``, ``util.go``.
"""

from __future__ import annotations

from typing import Any, Final

from syncline.ignition.butane import messages as m
from syncline.ignition.butane.files import Kind, LocalError, Walked, read_link, read_local, read_node, tree_nodes
from syncline.ignition.butane.merging import Config, common_source
from syncline.ignition.butane.places import error
from syncline.ignition.butane.translation import Draft, text_bytes
from syncline.ignition.golang import joined
from syncline.ignition.report import Path

Value = dict[str, Any]

_TYPES: Final = {"files": "File", "directories": "Directory", "links": "Link"}


class _Nodes:
    """The entries of the draft by path; a later one hides an earlier one."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        storage = draft.config.get("storage", {})
        self._known: dict[str, dict[str, int]] = {
            section: {node.get("path", ""): index for index, node in enumerate(storage.get(section) or ())}
            for section in _TYPES
        }

    def exists(self, path: str) -> bool:
        return any(path in paths for paths in self._known.values())

    def find(self, section: str, path: str) -> tuple[int, Config] | None:
        index = self._known[section].get(path)
        return None if index is None else (index, self._draft.section("storage", section)[index])

    def add(self, section: str, node: Config, source: Path) -> tuple[int, Config]:
        draft = self._draft
        nodes = draft.section("storage", section)
        index = len(nodes)
        nodes.append(node)
        self._known[section][node["path"]] = index
        at = ("storage", section, index)
        common_source(draft.schema, draft.schema.objects[_TYPES[section]], node, at, source, draft.places)
        if index == 0:
            draft.places["storage", section] = source
        return index, node


# -- trees -----------------------------------------------------------------------------------------------------------


def add_trees(draft: Draft) -> None:
    """Add every tree; problems become findings at the tree, and the walk continues."""
    trees: list[Value] = draft.document.get("storage", {}).get("trees") or []
    if not trees:
        return
    nodes = _Nodes(draft)
    for index, tree in enumerate(trees):
        source = ("storage", "trees", index)
        if draft.files is None:
            draft.findings.append(error(source, m.NO_FILES_DIR))
            return
        try:
            walked = tree_nodes(tree.get("local", ""), draft.files)
        except LocalError as problem:
            draft.findings.append(error(source, str(problem)))
            continue
        adder = _TreeAdder(draft, nodes, tree, source)
        for step in walked:
            try:
                adder.add(step)
            except LocalError as problem:
                draft.findings.append(error(source, str(problem)))


class _TreeAdder:
    def __init__(self, draft: Draft, nodes: _Nodes, tree: Value, source: Path) -> None:
        self._draft = draft
        self._nodes = nodes
        self._tree = tree
        self._source = source
        self._base = tree.get("path") or "/"
        self._owner = {name: dict(tree[name]) for name in ("group", "user") if tree.get(name)}

    def add(self, step: Walked) -> None:
        if step.problem:
            raise LocalError(step.problem)
        path = joined(self._base, step.relative)
        if step.node.kind is Kind.DIRECTORY:
            self._directory(path)
        elif step.node.kind is Kind.FILE:
            self._file(path, step)
        elif step.node.kind is Kind.LINK:
            self._link(path, step)
        else:
            raise LocalError(m.FILE_TYPE)

    def _node(self, section: str, path: str, content: str) -> tuple[int, Config]:
        """Return the entry to fill at ``path``; raise if it has ``content`` or another kind."""
        found = self._nodes.find(section, path)
        if found is not None:
            target = found[1].get("contents", {}) if section == "files" else found[1]
            if target.get(content):
                raise LocalError(m.NODE_EXISTS)
            return found
        if self._nodes.exists(path):
            raise LocalError(m.NODE_EXISTS)
        return self._nodes.add(section, {**self._owned(), "path": path}, self._source)

    def _owned(self) -> Config:
        return {name: dict(owner) for name, owner in self._owner.items()}

    def _directory(self, path: str) -> None:
        """Add a directory only if one of its properties is set."""
        mode = self._tree.get("dir_mode")
        if mode is None and not self._owner:
            return
        if self._nodes.exists(path):
            raise LocalError(m.NODE_EXISTS)
        node = {**self._owned(), "path": path, "mode": 0o755 if mode is None else mode}
        self._nodes.add("directories", node, self._source)

    def _file(self, path: str, step: Walked) -> None:
        draft = self._draft
        assert draft.files is not None
        index, node = self._node("files", path, "source")
        contents = node.setdefault("contents", {})
        data = read_node(step, draft.files)
        contents["source"], compression = draft.encoded(data, contents.get("compression"))
        at = ("storage", "files", index)
        draft.places[*at, "contents", "source"] = self._source
        if compression is not None:
            contents["compression"] = compression
            draft.places[*at, "contents", "compression"] = self._source
        draft.places[*at, "contents"] = self._source
        if "mode" not in node:
            wanted = self._tree.get("file_mode")
            node["mode"] = wanted if wanted is not None else 0o755 if step.node.executable else 0o644
            draft.places[*at, "mode"] = self._source

    def _link(self, path: str, step: Walked) -> None:
        draft = self._draft
        assert draft.files is not None
        index, node = self._node("links", path, "target")
        node["target"] = read_link(step, draft.files)
        draft.places["storage", "links", index, "target"] = self._source


# -- quadlets --------------------------------------------------------------------------------------------------------


def quadlet_template(name: str) -> str | None:
    """Return the template of an instance: ``web@.container`` for ``web@1.container``; None for other names."""
    at, dot = name.find("@"), name.rfind(".")
    if at < 0 or dot < 0 or at + 1 == dot:
        return None
    return f"{name[:at]}@.{name[dot + 1 :]}"


def add_quadlets(draft: Draft) -> None:
    """Add files of Podman's systemd generator and their drop-ins; instances of templates become links."""
    quadlets: list[Value] = draft.document.get("systemd", {}).get("quadlets") or []
    if not quadlets:
        return
    nodes = _Nodes(draft)
    draft.places["storage",] = ("systemd", "quadlets")
    for index, quadlet in enumerate(quadlets):
        source = ("systemd", "quadlets", index)
        name = quadlet.get("name", "")
        base = "/etc/containers/systemd" if quadlet.get("rootful") else "/etc/containers/systemd/users"
        path = joined(base, name)
        template = quadlet_template(name)
        if template is None:
            _content_file(draft, nodes, quadlet, path, source)
        elif nodes.exists(path):
            draft.findings.append(error(source, m.NODE_EXISTS))
        else:
            number, _ = nodes.add("links", {"path": path, "target": template}, source)
            draft.places["storage", "links", number, "path"] = (*source, "name")
            draft.places["storage", "links", number, "target"] = source
        for number, dropin in enumerate(quadlet.get("dropins") or ()):
            inner = f"{path}.d/{dropin.get('name', '')}"
            _content_file(draft, nodes, dropin, inner, (*source, "dropins", number))


def _content_file(draft: Draft, nodes: _Nodes, value: Value, path: str, source: Path) -> None:
    """Add a file with the content of ``contents`` or ``contents_local``."""
    if nodes.exists(path):
        draft.findings.append(error(source, m.NODE_EXISTS))
        return
    index, node = nodes.add("files", {"path": path}, source)
    at = ("storage", "files", index)
    draft.places[*at, "path"] = (*source, "name")
    origin: Path = ()
    data = b""
    if value.get("contents_local"):
        origin = (*source, "contents_local")
        try:
            data = read_local(value["contents_local"], draft.files)
        except LocalError as problem:
            draft.findings.append(error(origin, str(problem)))
            return
    if value.get("contents"):
        origin = (*source, "contents")
        data = text_bytes(value["contents"])
    url, compression = draft.encoded(data)
    node["contents"] = {"source": url, "compression": compression}
    node["mode"] = 0o644
    draft.places[*at, "contents", "source"] = draft.places[*at, "contents"] = origin
    draft.places[*at, "contents", "compression"] = draft.places[*at, "mode"] = source
