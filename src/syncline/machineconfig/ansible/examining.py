"""Reads a playbook without running it: what it asks of nodes, and what is refused; pure. Entry point: :func:`examine`.

It follows the playbook into roles and included files, so that a refusal names file and line before any node is touched.
A name that holds a template is followed to every file that it may name. What only a run can know is checked on the
node, by Ansible itself.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from syncline.kube.yaml.nodes import AliasNode, MappingNode, Node, ScalarNode, SequenceNode, YamlError, read_first
from syncline.machineconfig.ansible.content import Files
from syncline.machineconfig.ansible.outcome import Task
from syncline.machineconfig.ansible.play import DRAIN, DRAIN_TAG, NONE, REBOOT_TAG

MAX_TASKS = 200
MAX_REFUSALS = 20
MAX_FILES = 1000
COLLECTIONS = "collections/ansible_collections"
_SECTIONS = ("pre_tasks", "tasks", "post_tasks", "handlers")
_BLOCKS = ("block", "rescue", "always")
_INCLUDES = ("include_tasks", "import_tasks")
_ROLES = ("include_role", "import_role")
_OWN = ("ansible.builtin.", "ansible.legacy.")
_LOCAL = ("localhost", "127.0.0.1", "{{ inventory_hostname }}", "{{inventory_hostname}}")
_WHY = {
    "async": "a task runs to its end here; the play's timeout bounds it: leave async out",
    "serial": "the pool's maxUnavailable and canaries order the nodes: leave serial out",
    "delegate_to": "each node runs its own tasks: leave delegate_to out, or name localhost",
    "run_once": "each node runs all of its tasks, in the pool's order: leave run_once out",
    "vars_prompt": "no one answers: give spec.variables or spec.variablesFrom",
    "connection": "plays run on their node itself: leave connection out, or say local",
}
_KEYWORDS = frozenset(
    {
        *("name", "when", "tags", "vars", "register", "notify", "listen", "loop", "loop_control", "no_log", "args"),
        *("become", "become_user", "become_method", "become_flags", "become_exe", "environment", "check_mode", "diff"),
        *("changed_when", "failed_when", "ignore_errors", "ignore_unreachable", "until", "retries", "delay", "poll"),
        *("async", "delegate_to", "delegate_facts", "run_once", "throttle", "any_errors_fatal", "timeout"),
        *("collections", "module_defaults", "debugger", "connection", "remote_user", "port", "action", "local_action"),
    }
)


@dataclass(frozen=True)
class Examined:
    """What was found. ``says``: None or Drain, for the tags and ``reboot`` tasks. ``modules``: with their place, those
    of collections. ``reboots``: places of tasks that reboot."""

    refusals: tuple[str, ...] = ()
    says: str = NONE
    tasks: tuple[Task, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    reboots: tuple[str, ...] = ()


def examine(files: Files, playbook: str = "", role: str = "") -> Examined:
    """Return what the playbook, or the role, asks for. Never raises for its content."""
    walk = _Walk(files)
    if playbook:
        walk.playbook(posixpath.normpath(playbook), "spec.playbook")
    else:
        walk.role(role, "spec.role", ())
    return Examined(
        tuple(walk.refusals[:MAX_REFUSALS]),
        walk.says,
        tuple(walk.tasks[:MAX_TASKS]),
        tuple(sorted(walk.modules.items())),
        tuple(walk.reboots),
    )


@dataclass
class _Walk:
    files: Files
    refusals: list[str] = field(default_factory=list)
    says: str = NONE
    tasks: list[Task] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)
    reboots: list[str] = field(default_factory=list)
    seen: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def refuse(self, text: str) -> None:
        if text not in self.refusals:
            self.refusals.append(text)

    # -- files ---------------------------------------------------------------------------------------------------------

    def playbook(self, path: str, asked: str) -> None:
        for play in self._items(path, asked, ()):
            keys = _mapping(play)
            imported = next((keys[key] for key in _named("import_playbook") if key in keys), None)
            if imported is not None:
                where = posixpath.join(posixpath.dirname(path), _text(imported[1]))
                self.playbook(posixpath.normpath(where), f"{path}:{imported[0].line}")
                continue
            tags = self._common(path, keys, ())
            for key in ("serial", "vars_prompt"):
                if key in keys:
                    self._refuse_key(path, key, keys[key][0])
            for section in _SECTIONS:
                self._tasks(path, keys[section][1] if section in keys else None, tags, path)
            for each in _sequence(keys["roles"][1]) if "roles" in keys else []:
                self._listed_role(path, each, tags)

    def role(self, name: str, asked: str, tags: tuple[str, ...], only: str = "main") -> None:
        if "{{" in name:
            for role in sorted({path.split("/")[1] for path in self.files if path.startswith("roles/")}):
                self.role(role, asked, tags)
            return
        folder = self._folder_of(name)
        if folder is None:
            places = "roles/ and the collections of spec.collections"
            self.refuse(f"{asked}: role {name!r} is in none of {places}")
            return
        for part, first in (("meta", "main"), ("handlers", "main"), ("tasks", only)):
            path = next(
                (p for end in (".yml", ".yaml", "") if (p := f"{folder}/{part}/{first}{end}") in self.files), ""
            )
            if path and part != "meta":
                self.file(path, asked, tags, folder)
            elif path:
                found = _mapping(self._root(path, asked))
                for each in _sequence(found["dependencies"][1]) if "dependencies" in found else []:
                    self._listed_role(path, each, tags)

    def _folder_of(self, name: str) -> str | None:
        parts = name.split(".")
        folder = f"{COLLECTIONS}/{parts[0]}/{parts[1]}/roles/{parts[2]}" if len(parts) == 3 else f"roles/{name}"
        if len(parts) == 3:
            self.modules.setdefault(name, "its roles")
        there = any(path.startswith(f"{folder}/") for path in self.files)
        return folder if there and ".." not in parts else None

    def file(self, path: str, asked: str, tags: tuple[str, ...], base: str) -> None:
        if (path, tags) in self.seen or len(self.seen) > MAX_FILES:
            return
        self.seen.add((path, tags))
        root = self._root(path, asked)
        self._tasks(path, root, tags, base)

    def _items(self, path: str, asked: str, tags: tuple[str, ...]) -> list[Node]:
        if (path, tags) in self.seen:
            return []
        self.seen.add((path, tags))
        return _sequence(self._root(path, asked))

    def _root(self, path: str, asked: str) -> Node | None:
        file = self.files.get(path)
        if file is None:
            self.refuse(f"{asked}: file {path!r} is not in the repository's folder")
            return None
        try:
            return read_first(file.content, file=path)
        except YamlError as error:
            self.refuse(f"{error}")
            return None

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _listed_role(self, path: str, node: Node, tags: tuple[str, ...]) -> None:
        keys = _mapping(node)
        name = _text(node) or next((_text(keys[key][1]) for key in ("role", "name") if key in keys), "")
        self.role(name, f"{path}:{node.line}", self._common(path, keys, tags))

    def _tasks(self, path: str, node: Node | None, tags: tuple[str, ...], base: str) -> None:
        for each in _sequence(node):
            keys = _mapping(each)
            mine = self._common(path, keys, tags)
            blocks = [keys[block][1] for block in _BLOCKS if block in keys]
            for block in blocks:
                self._tasks(path, block, mine, base)
            if not blocks and keys:
                self._task(path, each, keys, mine, base)

    def _task(self, path: str, node: Node, keys: _Keys, tags: tuple[str, ...], base: str) -> None:
        if "async" in keys and _text(keys["async"][1]) not in ("", "0"):
            self._refuse_key(path, "async", keys["async"][0])
        place = f"{path}:{node.line}"
        module = _module(keys)
        short = module.removeprefix(_OWN[0]).removeprefix(_OWN[1])
        value = keys[module][1] if module in keys else None
        if short in _INCLUDES:
            self._include(path, place, value, tags, base)
        elif short in _ROLES:
            given = _mapping(value)
            name = _text(given["name"][1]) if "name" in given else ""
            self.role(name, place, tags, _text(given["tasks_from"][1]) if "tasks_from" in given else "main")
        else:
            name = _text(keys["name"][1]) if "name" in keys else short
            self.tasks.append(Task(name, place, tags=tags))
        if short == "reboot":
            self.reboots.append(place)
            self.says = DRAIN
        elif module.count(".") >= 2 and not module.startswith(_OWN):
            self.modules.setdefault(module, place)

    def _include(self, path: str, place: str, value: Node | None, tags: tuple[str, ...], base: str) -> None:
        given = _mapping(value)
        name = _text(value) or next((_text(given[key][1]) for key in ("file", "_raw_params") if key in given), "")
        near = posixpath.dirname(path)
        if "{{" in name:
            for other in sorted(self.files):
                if posixpath.dirname(other) == near and other.endswith((".yml", ".yaml")) and other != path:
                    self.file(other, place, tags, base)
            return
        places = [posixpath.normpath(posixpath.join(folder, name)) for folder in (near, f"{base}/tasks")]
        self.file(next((one for one in places if one in self.files), places[0]), place, tags, base)

    def _common(self, path: str, keys: _Keys, tags: tuple[str, ...]) -> tuple[str, ...]:
        """Read what plays, roles, blocks and tasks have alike; return the tags with those from above."""
        if "delegate_to" in keys and _text(keys["delegate_to"][1]) not in _LOCAL:
            self._refuse_key(path, "delegate_to", keys["delegate_to"][0])
        if "run_once" in keys and _text(keys["run_once"][1]).lower() not in ("false", "no"):
            self._refuse_key(path, "run_once", keys["run_once"][0])
        if "connection" in keys and _text(keys["connection"][1]) not in ("local", "ansible.builtin.local"):
            self._refuse_key(path, "connection", keys["connection"][0])
        given = keys["tags"][1] if "tags" in keys else None
        own = [_text(each) for each in _sequence(given)] or [one.strip() for one in _text(given).split(",")]
        found = tuple(sorted({*tags, *(tag for tag in own if tag)}))
        if {DRAIN_TAG, REBOOT_TAG} & set(found):
            self.says = DRAIN
        return found

    def _refuse_key(self, path: str, key: str, at: Node) -> None:
        self.refuse(f"{path}:{at.line}: {key} is refused: {_WHY[key]}")


_Keys = dict[str, tuple[ScalarNode, Node]]


def _module(keys: _Keys) -> str:
    """Return the module of a task, as it is written; empty if there is none."""
    for key in ("action", "local_action"):
        if key in keys:
            given = _mapping(keys[key][1])
            return _text(given["module"][1]) if "module" in given else _text(keys[key][1]).partition(" ")[0]
    return next((key for key in keys if key not in _KEYWORDS and not key.startswith("with_")), "")


def _named(name: str) -> Iterator[str]:
    yield name
    for prefix in _OWN:
        yield prefix + name


def _mapping(node: Node | None) -> _Keys:
    node = _real(node)
    if not isinstance(node, MappingNode):
        return {}
    return {key.value: (key, value) for key, value in node.pairs if isinstance(key, ScalarNode)}


def _sequence(node: Node | None) -> list[Node]:
    node = _real(node)
    return list(node.items) if isinstance(node, SequenceNode) else []


def _text(node: Node | None) -> str:
    node = _real(node)
    return node.value if isinstance(node, ScalarNode) else ""


def _real(node: Node | None) -> Node | None:
    for _ in range(100):
        if not isinstance(node, AliasNode):
            return node
        node = node.target
    return None
