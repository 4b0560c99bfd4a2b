"""The house rules that a machine can check (docs/map.md, docs/decisions/0001-house-rules.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "syncline"
FILES = sorted(SRC.rglob("*.py"))

FLOORS = {
    "base": 0,
    "kube": 1,
    "control": 2,
    "ignition": 2,
    "cluster": 3,
    "sources": 3,
    "gitops": 4,
    "appset": 4,
    "machineconfig": 4,
    "patterns": 4,
    "fleet": 4,
    "assembly": 5,
    "explain": 6,
    "rehearsal": 6,
    "web": 7,
    "cli": 7,
}
MAX_FUNCTION = 70
MAX_FILE = 700

SOCKETS_AND_FILES = (
    "base/removal.py",
    "kube/http.py",
    "kube/execplugin.py",
    "kube/kubeconfig.py",
    "cluster/serve.py",
    "cluster/connections.py",
    "cluster/conversing.py",
    "cluster/disk.py",
    "cluster/datafile.py",
    "cluster/pki.py",
    "cluster/webhooks.py",
    "cluster/machines/process.py",
    "cluster/machines/launching.py",
    "cluster/machines/sandbox/",
    "cluster/machines/disk.py",
    "sources/",
    "control/manager.py",
    "assembly/",
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
    "cluster/serve.py",
    "cluster/conversing.py",
    "cluster/webhooks.py",
    "cluster/machines/",
    "sources/",
    "kube/http.py",
    "cli/",
    "assembly/",
    "cluster/disk.py",
)


def _name(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def _room(name: str) -> str:
    return name.split("/")[0].removesuffix(".py")


def _imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _allowed(importer: str, imported: str) -> bool:
    if importer == imported or importer not in FLOORS or imported not in FLOORS:
        return True
    mine, theirs = FLOORS[importer], FLOORS[imported]
    if importer == "sources":
        return theirs <= 1 or imported == "ignition"
    if mine == 4:
        return theirs <= 2 or (imported == "sources" and importer in {"gitops", "appset", "patterns"})
    return theirs < mine


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_floor_imports_only_lower_floors(path: Path) -> None:
    room = _room(_name(path))
    wrong = [
        f"{_name(path)}:{line} imports {module}: {room} (floor {FLOORS[room]}) may not use it; meet at the API instead"
        for module, line in _imports(_parse(path))
        if module.startswith("syncline.") and room in FLOORS and not _allowed(room, module.split(".")[1])
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [f for f in FILES if _room(_name(f)) == "base"], ids=_name)
def test_the_ground_floor_knows_only_the_standard_library(path: Path) -> None:
    import sys

    wrong = [
        f"{_name(path)}:{line} imports {module}"
        for module, line in _imports(_parse(path))
        if module.split(".")[0] not in sys.stdlib_module_names and not module.startswith("syncline")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_chance_and_clock_come_from_their_modules(path: Path) -> None:
    name = _name(path)
    wrong = []
    for module, line in _imports(_parse(path)):
        home, instead = BANNED_MODULES.get(module.split(".")[0], ("", ""))
        if not home or name == home:
            continue
        if module.split(".")[0] == "time" and name.startswith(LIVE_EDGES):
            continue
        wrong.append(f"{name}:{line} imports {module}; {instead}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_nothing_sleeps_and_nobody_reads_the_wall_clock_but_drivers(path: Path) -> None:
    name = _name(path)
    if name in CLOCK_MODULES or name.startswith(LIVE_EDGES):
        return
    wrong = []
    for node in ast.walk(_parse(path)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if re.search(r"(^|\.)(datetime|date)\.(now|utcnow|today)$", called):
            wrong.append(f"{name}:{node.lineno} {called}(): take `now: datetime` as a parameter")
        if called in {"asyncio.sleep", "time.sleep"}:
            wrong.append(f"{name}:{node.lineno} {called}(): return Requeue(after_s, why) instead")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_sockets_subprocesses_and_files_stay_in_the_modules_made_for_them(path: Path) -> None:
    name = _name(path)
    if name.startswith(SOCKETS_AND_FILES):
        return
    tree = _parse(path)
    wrong = [
        f"{name}:{line} imports {module}; keep it in one of {', '.join(SOCKETS_AND_FILES)}"
        for module, line in _imports(tree)
        if module in EDGE_MODULES or module.split(".")[0] in EDGE_MODULES
    ]
    wrong += [
        f"{name}:{node.lineno} open(): read it in a module made for files and pass the value"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"open", "os.open", "io.open"}
    ]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_functions_and_files_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wrong = []
    lines = len(text.splitlines())
    if lines > MAX_FILE:
        wrong.append(f"{_name(path)} has {lines} lines, {MAX_FILE} are allowed: it is two rooms in one")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1 - _docstring_lines(node)
            if length > MAX_FUNCTION:
                wrong.append(f"{_name(path)}:{node.lineno} {node.name} has {length} lines, {MAX_FUNCTION} are allowed")
    assert not wrong, "\n".join(wrong)


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{_name(path)} has no module docstring"


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_modules_named_in_docstrings_exist(path: Path) -> None:
    named = re.findall(r"`{2}((?:[a-z_]+/)+[a-z_]+\.py)`{2}", path.read_text(encoding="utf-8"))
    missing = [
        target
        for target in named
        if not (SRC / target).exists() and not (path.parent / target).exists() and not (ROOT / target).exists()
    ]
    assert not missing, f"{_name(path)} names modules that do not exist: {missing}"


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_no_catch_all_modules(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "common", "misc", "manager_impl"}, (
        f"{_name(path)}: name the module after what it does"
    )


def test_the_project_speaks_of_itself_alone() -> None:
    words = re.compile(r"/work/(main|shared|brief)|pypi\.org|files\.pythonhosted")
    places = [*FILES, *ROOT.glob("docs/**/*.md"), ROOT / "README.md", *ROOT.glob("*.lock"), *ROOT.glob("tests/**/*.py")]
    wrong = [
        str(p.relative_to(ROOT))
        for p in places
        if p.exists() and p != Path(__file__).resolve() and words.search(p.read_text(encoding="utf-8"))
    ]
    assert not wrong, f"machine paths or registry hosts in {wrong}"
