"""The house rules that a machine can check (docs/map.md, docs/decisions/0001-house-rules.md)."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "syncline"
FILES = sorted(SRC.rglob("*.py"))

FLOORS = {
    "base": 0,
    "kube": 1,
    "control": 2,
    "ignition": 2,
    "clustergroup": 2,
    "cluster": 3,
    "sources": 3,
    "apply": 4,
    "argo": 5,
    "gitops": 6,
    "appset": 6,
    "machineconfig": 6,
    "patterns": 6,
    "fleet": 6,
    "notifications": 6,
    "telemetry": 7,
    "assembly": 8,
    "hosts": 9,
    "explain": 9,
    "views": 9,
    "rehearsal": 10,
    "web": 11,
    "cli": 12,
}
MAX_FUNCTION = 70
MAX_FILE = 700
MAX_METHODS = 25
LARGE_CLASSES = {
    # One state behind one lock, or one language with a method for each of its forms. They may shrink, not grow.
    "sources/git/mirrors.py: Repository": 34,
    "kube/cel/parser.py: _Parser": 33,
    "control/cache.py: Cache": 33,
    "cluster/machines/processes/process.py: ProcessRuntime": 32,
    "telemetry/spans.py: Story": 29,
    "sources/remote/artifacts.py: Artifacts": 29,
    "sources/kustomize/resources/resource.py: Resource": 27,
    "machineconfig/impact/forecast.py: _Telling": 27,
    "assembly/inspection/pulled.py: PulledCache": 27,
}
CYCLES = {
    # A tree reads as its repository does: same mirror, same rights, same large files.
    ("syncline.sources.git.tree", "syncline.sources.git.mirrors"),
}

SOCKETS_AND_FILES = (
    "base/landlock.py",
    "base/priority.py",
    "base/removal.py",
    "base/scratch.py",
    "kube/transport/http.py",
    "kube/transport/execplugin.py",
    "kube/transport/kubeconfig.py",
    "cluster/serving/serve.py",
    "cluster/serving/connections.py",
    "cluster/serving/guarding.py",
    "cluster/serving/conversing.py",
    "cluster/serving/outgoing.py",
    "cluster/storage/disk.py",
    "cluster/storage/datafile.py",
    "cluster/access/pki.py",
    "cluster/serving/webhooks.py",
    "cluster/serving/evaluators.py",
    "cluster/machines/processes/process.py",
    "cluster/machines/processes/gateway.py",
    "cluster/machines/processes/launching.py",
    "cluster/machines/sandbox/",
    "cluster/machines/disk.py",
    "sources/",
    "control/manager.py",
    "assembly/",
    "hosts/",
    "telemetry/otlp.py",
    "rehearsal/reality/files.py",
    "rehearsal/repository.py",
    "web/",
    "cli/",
)
BANNED_MODULES = {
    "random": ("base/entropy.py", "take a syncline.base.entropy.Entropy"),
    "secrets": ("base/entropy.py", "take a syncline.base.entropy.Entropy"),
    "uuid": ("base/entropy.py", "take a syncline.base.entropy.Entropy"),
    "time": ("base/clock.py", "take `now: datetime`, or a syncline.base.clock.Clock in a driver"),
}
EDGE_MODULES = {
    "socket",
    "subprocess",
    "aiohttp",
    "shutil",
    "tempfile",
    "sqlite3",
    "http.client",
    "urllib.request",
    "ssl",
}
CLOCK_MODULES = ("base/clock.py", "control/manager.py")
LIVE_EDGES = (
    "cluster/serving/serve.py",
    "cluster/serving/conversing.py",
    "cluster/serving/outgoing.py",
    "cluster/serving/webhooks.py",
    "cluster/machines/",
    "sources/",
    "kube/transport/http.py",
    "cli/",
    "assembly/",
    "hosts/",
    "telemetry/otlp.py",
    "cluster/storage/disk.py",
)


def _name(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def _module(path: Path) -> str:
    """As it is imported; a package by its folder."""
    return f"syncline.{_name(path).removesuffix('.py').removesuffix('/__init__')}".replace("/", ".")


def _room(name: str) -> str:
    return name.split("/")[0].removesuffix(".py")


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(_read(path), str(path))


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """Once for all rules. The collector would look through all trees again while each is made."""
    gc.disable()
    try:
        return tuple(ast.walk(_parse(path)))
    finally:
        gc.enable()


@cache
def _imports(path: Path) -> tuple[tuple[str, int], ...]:
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[tuple[str, int]]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def _refuse(wrong: Iterable[str]) -> None:
    found = list(dict.fromkeys(wrong))
    assert not found, "\n".join(found)


def _allowed(importer: str, imported: str) -> bool:
    if importer == imported or importer not in FLOORS or imported not in FLOORS:
        return True
    if importer == "sources":
        return FLOORS[imported] <= 1 or imported in {"ignition", "clustergroup"}
    if importer == "machineconfig":
        return FLOORS[imported] <= 2
    if imported in {"cluster", "sources"} and FLOORS[importer] <= FLOORS["gitops"]:
        return imported == "sources" and importer in {"argo", "gitops", "appset", "patterns"}
    return FLOORS[imported] < FLOORS[importer]


def test_a_floor_imports_only_lower_floors() -> None:
    _refuse(
        f"{_name(path)}:{line} imports {module}: {_room(_name(path))} may not use it; meet at the API instead"
        for path in FILES
        for module, line in _imports(path)
        if module.startswith("syncline.")
        and _room(_name(path)) in FLOORS
        and not _allowed(_room(_name(path)), module.split(".")[1])
    )


def test_the_ground_floor_knows_only_the_standard_library() -> None:
    _refuse(
        f"{_name(path)}:{line} imports {module}"
        for path in FILES
        if _room(_name(path)) == "base"
        for module, line in _imports(path)
        if module.split(".")[0] not in sys.stdlib_module_names and not module.startswith("syncline")
    )


def test_chance_and_clock_come_from_their_modules() -> None:
    wrong = []
    for path in FILES:
        name = _name(path)
        for module, line in _imports(path):
            top = module.split(".")[0]
            home, instead = BANNED_MODULES.get(top, ("", ""))
            if home and name != home and not (top == "time" and name.startswith(LIVE_EDGES)):
                wrong.append(f"{name}:{line} imports {module}; {instead}")
    _refuse(wrong)


def test_ansible_is_a_child_process_and_never_imported() -> None:
    """Its licence is the GPL's; the plugin that it loads itself has that licence, too (NOTICE)."""
    _refuse(
        f"{_name(path)}:{line} imports {module}; start it with sources/ansible/launching.py"
        for path in FILES
        if _name(path) != "sources/ansible/callback-plugins/syncline_report.py"
        for module, line in _imports(path)
        if module.split(".")[0] in {"ansible", "ansible_collections"}
    )


def test_nothing_sleeps_and_only_drivers_read_the_wall_clock() -> None:
    wrong = []
    for path in FILES:
        name = _name(path)
        if name in CLOCK_MODULES or name.startswith(LIVE_EDGES):
            continue
        for node in _nodes(path):
            if not isinstance(node, ast.Call):
                continue
            called = _called(node)
            if re.search(r"(^|\.)(datetime|date)\.(now|utcnow|today)$", called):
                wrong.append(f"{name}:{node.lineno} {called}(): take `now: datetime` as a parameter")
            if called in {"asyncio.sleep", "time.sleep"}:
                wrong.append(f"{name}:{node.lineno} {called}(): return Requeue(after_s, why) instead")
    _refuse(wrong)


def _called(call: ast.Call) -> str:
    """The dotted name of what is called, empty where it is not a plain name: far cheaper than ``ast.unparse``."""
    parts: list[str] = []
    node: ast.AST = call.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


INVALID_JSON = {"ValueError", "json.JSONDecodeError"}


def test_json_that_may_be_invalid_may_be_too_deep() -> None:
    """A thousand brackets raise RecursionError, which is no ValueError: it would pass the place made for bad input."""
    wrong = []
    for path in FILES:
        for node in _nodes(path):
            if not isinstance(node, ast.Try):
                continue
            lines = [
                call.lineno
                for statement in node.body
                for call in ast.walk(statement)
                if isinstance(call, ast.Call) and _called(call) == "json.loads"
            ]
            caught = {ast.unparse(one) for handler in node.handlers for one in _kinds(handler)}
            if lines and caught & INVALID_JSON and not caught & {"RecursionError", "Exception", "BaseException"}:
                wrong.append(f"{_name(path)}:{lines[0]} catches invalid JSON; catch RecursionError as well")
    _refuse(wrong)


def _kinds(handler: ast.ExceptHandler) -> list[ast.expr]:
    """The exceptions that a handler names."""
    if handler.type is None:
        return []
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]


def test_sockets_subprocesses_and_files_stay_in_the_modules_made_for_them() -> None:
    wrong = []
    for path in FILES:
        name = _name(path)
        if name.startswith(SOCKETS_AND_FILES):
            continue
        wrong += [
            f"{name}:{line} imports {module}; keep it in one of {', '.join(SOCKETS_AND_FILES)}"
            for module, line in _imports(path)
            if module in EDGE_MODULES or module.split(".")[0] in EDGE_MODULES
        ]
        wrong += [
            f"{name}:{node.lineno} open(): read it in a module made for files and pass the value"
            for node in _nodes(path)
            if isinstance(node, ast.Call) and _called(node) in {"open", "os.open", "io.open"}
        ]
    _refuse(wrong)


def test_files_stay_small() -> None:
    _refuse(
        f"{_name(path)} has {lines} lines, {MAX_FILE} are allowed: it is two rooms in one"
        for path in FILES
        if (lines := len(_read(path).splitlines())) > MAX_FILE
    )


ALIVE = re.compile(r"\b(Callable|\w*(?:Cache|Snapshot|Book|Store|Memo|Verdicts|Runner|Worker|Workers|Process|Popen))\b")
LOOKS_LATER = {
    # Reading a whole cluster for each look at a node would cost more than the drain; it is read before a cordon only.
    "machineconfig/drain/observe.py: forecast",
}


def test_what_was_observed_holds_no_callable_cache_or_process() -> None:
    """A plan is a function of values: what it needs is read by ``observe``, or asked for by an action."""
    fields = (
        (f"{_name(path)}: {ast.unparse(one.target)}", ast.unparse(one.annotation), one.lineno)
        for path in FILES
        for node in _nodes(path)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Observed")
        for one in node.body
        if isinstance(one, ast.AnnAssign)
    )
    _refuse(
        f"{field} (line {line}) is {found[0]}; hold the value, or name the question in an action"
        for field, kind, line in fields
        if (found := ALIVE.search(kind)) and field not in LOOKS_LATER
    )


def test_functions_stay_small() -> None:
    _refuse(
        f"{_name(path)}:{node.lineno} {node.name} has {length} lines, {MAX_FUNCTION} are allowed"
        for path in FILES
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := _length(node)) > MAX_FUNCTION
    )


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines, first = (node.end_lineno or node.lineno) - node.lineno + 1, node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_classes_stay_small() -> None:
    _refuse(
        f"{name}:{node.lineno} {node.name} has {count} methods, {allowed} are allowed"
        for path in FILES
        for name in (_name(path),)
        for node in _nodes(path)
        if isinstance(node, ast.ClassDef)
        for count in (sum(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body),)
        for allowed in (LARGE_CLASSES.get(f"{name}: {node.name}", MAX_METHODS),)
        if count > allowed
    )


def test_no_modules_import_one_another() -> None:
    """Also where only types are named: two files that need each other are one, or the lower one names a protocol."""
    names = {path: _module(path) for path in FILES}
    modules = {module for path, module in names.items() if path.name != "__init__.py"}
    graph = {
        module: {target for target, _ in _imports(path) if target in modules and (module, target) not in CYCLES}
        for path, module in names.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_every_module_says_what_it_is_for() -> None:
    _refuse(
        f"{_name(path)} has no module docstring"
        for path in FILES
        if _read(path).strip() and not ast.get_docstring(_parse(path))
    )


def test_modules_named_in_docstrings_exist() -> None:
    _refuse(
        f"{_name(path)} names {target}, which does not exist"
        for path in FILES
        for target in re.findall(r"`{2}((?:[a-z_]+/)+[a-z_]+\.py)`{2}", _read(path))
        if not any((place / target).exists() for place in (SRC, path.parent, ROOT))
    )


def test_files_named_by_the_map_exist() -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)
    assert len(named) > 50
    _refuse(
        f"docs/map.md names {one}, which does not exist"
        for one in named
        if not (SRC / one).exists() and not (ROOT / one).exists()
    )


def test_the_map_draws_the_floors_that_are_enforced() -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    drawn = {
        room: int(floor)
        for floor, rooms in re.findall(r"^ ?(\d+)  (.+)$", text, re.MULTILINE)
        for room in rooms.split()
    }
    assert drawn == FLOORS


def test_no_module_gives_a_name_two_values() -> None:
    """The second value would silently take the place of the first."""
    wrong = []
    for path in FILES:
        given: set[str] = set()
        for node in _parse(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = (node.target,)
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            wrong += [f"{_name(path)}:{node.lineno} gives {name} another value" for name in sorted(names & given)]
            given |= names
    _refuse(wrong)


def test_no_catch_all_modules() -> None:
    catch_all = {"utils", "util", "helpers", "common", "misc", "manager_impl"}
    _refuse(f"{_name(path)}: name the module after what it does" for path in FILES if path.stem in catch_all)


def test_the_project_speaks_of_itself_alone() -> None:
    words = re.compile(r"/work/(main|shared|brief)|pypi\.org|files\.pythonhosted")
    places = [*FILES, *ROOT.glob("docs/**/*.md"), ROOT / "README.md", *ROOT.glob("*.lock"), *ROOT.glob("tests/**/*.py")]
    wrong = [
        str(p.relative_to(ROOT))
        for p in places
        if p.exists() and p != Path(__file__).resolve() and words.search(p.read_text(encoding="utf-8"))
    ]
    assert not wrong, f"machine paths or registry hosts in {wrong}"
