#!/usr/bin/env python3
"""Set up and run Syncline on a fresh clone. Needs Python 3.11 or newer and git; no root.

    python3 run.py demo [--exit]     a Git repository becomes a running cluster, shown step by step
    python3 run.py demo --example examples/router-drain --virtual     another story, hours in seconds
    python3 run.py check [ROOM]      lint, types and the tests that a change reaches, in about a minute
    python3 run.py test [PYTEST…]    set up everything, then lint, check types and run every test
    python3 run.py helm              install Helm's library too, for charts (75 MB); a helm program on PATH will do
    python3 run.py ansible           install ansible-core too, for playbooks (GPL, a program of its own)
    python3 run.py syncline …        any syncline command
    python3 run.py bench             the figures of docs/performance.md

The virtual environment is .venv beside this file; it is made again when a lock file changed. It works from any folder:
commands see your current folder, PATH and PYTHONPATH as they are; check, test and bench run in this file's folder, with
its virtual environment.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
WORKERS = str(min((os.cpu_count() or 1) + 1, 4))
"""Tests wait for processes half of their time; each worker takes up to 3 GB."""
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
LAUNCHER = f"""#!{BIN / "python"}
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from syncline.cli.main import main
sys.exit(main())
"""


def say(text: str) -> None:
    print(f"[run] {text}", flush=True)


def set_up(lock: str) -> None:
    """Make .venv hold exactly what the lock file names; a second call costs nothing."""
    wanted = hashlib.sha256((ROOT / lock).read_bytes() + sys.version.encode()).hexdigest()
    mark = VENV / f".{lock}.done"
    if mark.exists() and mark.read_text() == wanted:
        set_up_launcher()
        return
    begun = time.monotonic()
    if not (BIN / "python").exists():
        say(f"making {VENV.name} with Python {sys.version.split()[0]}")
        venv.create(VENV, with_pip=True, symlinks=os.name != "nt")
    say(f"installing the locked dependencies of {lock}")
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / lock)], check=True)
    site = next(VENV.glob("lib/python*/site-packages"), VENV / "Lib" / "site-packages")
    (site / "syncline-source.pth").write_text(f"{ROOT / 'src'}\n")
    set_up_launcher()
    mark.write_text(wanted)
    say(f"set up in {time.monotonic() - begun:.1f} s")


def set_up_launcher() -> None:
    launcher = BIN / "syncline"
    if not launcher.exists() or launcher.read_text() != LAUNCHER:
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o755)


def set_up_javascript() -> None:
    """The JavaScript client of the tests, where there is npm; without it its tests say that they are left out."""
    folder, npm = ROOT / "tests" / "clients" / "javascript", shutil.which("npm")
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    mark = folder / "node_modules" / ".done"
    if npm is None or (mark.exists() and mark.read_text() == wanted):
        return
    say("installing the JavaScript client of the tests")
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=folder, check=False).returncode == 0:
        mark.write_text(wanted)
    else:
        say("npm could not install it; its tests are left out")


def pin_of(package: str, lock: str) -> str:
    """The lines of a lock that pin one package, with its hashes."""
    lines = (ROOT / lock).read_text().splitlines(keepends=True)
    start = next(at for at, line in enumerate(lines) if line.startswith(f"{package}=="))
    end = next((at for at in range(start + 1, len(lines)) if not lines[at].startswith(" ")), len(lines))
    return "".join(lines[start:end])


HELM = ("helm-python-sdk",)
ANSIBLE = ("ansible-core", "jinja2", "markupsafe", "packaging", "resolvelib")


def set_up_extra(name: str, packages: tuple[str, ...]) -> None:
    """Packages that do not come with the rest, as requirements-dev.lock pins them: too large, or of another licence."""
    wanted = VENV / f"{name}.lock"
    wanted.write_text("".join(pin_of(package, "requirements-dev.lock") for package in packages))
    say(f"installing {', '.join(packages)}")
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--require-hashes", "--only-binary", ":all:", "-r", str(wanted)], check=True)


def execute(*command: str) -> int:
    """In the caller's folder and environment."""
    return _call(command, None, None)


def execute_here(*command: str) -> int:
    """In this file's folder with the virtual environment first on PATH, for tests and benches."""
    return _call(command, ROOT, dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"))


def _call(command: tuple[str, ...], folder: Path | None, environment: dict[str, str] | None) -> int:
    try:
        return subprocess.call(command, cwd=folder, env=environment)
    except KeyboardInterrupt:
        return 130


def from_here(word: str) -> str:
    """A path below the caller's folder where there is one; other words count from this file's folder."""
    is_path = "/" in word or word.endswith(".py")
    return str(Path(word).resolve()) if is_path and Path(word.split("::")[0]).exists() else word


def test(rest: list[str]) -> int:
    """Lint, types and tests, in that order; all are run, any failure fails."""
    set_up("requirements-dev.lock")
    set_up_javascript()
    rest = [from_here(word) for word in rest]
    checks = [
        ("ruff", [str(BIN / "ruff"), "check", "."]),
        ("mypy", [str(BIN / "mypy"), "--strict", "-p", "syncline"]),
        ("pytest", [str(BIN / "python"), "-m", "pytest", "-n", WORKERS, "--dist", "worksteal", *rest]),
    ]
    failed = [name for name, command in checks if execute_here(*command) != 0]
    say(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


def check(rest: list[str]) -> int:
    """See tools/check.py. Arguments are judged before anything is installed."""
    sys.path.insert(0, str(ROOT / "tools"))
    import check as tool  # type: ignore[import-not-found,unused-ignore]

    room = tool.parse(rest)
    set_up("requirements-dev.lock")
    return execute_here(str(BIN / "python"), str(ROOT / "tools" / "check.py"), *([room] if room else []))


def demo(rest: list[str]) -> int:
    set_up("requirements.lock")
    rest = [word if Path(word).exists() or not (ROOT / word).is_dir() else str(ROOT / word) for word in rest]
    return execute(str(BIN / "syncline"), "demo", *rest)


def bench(rest: list[str]) -> int:
    set_up("requirements-dev.lock")
    return execute_here(str(BIN / "python"), "-m", "bench", *rest)


def helm(rest: list[str]) -> int:
    set_up("requirements.lock")
    set_up_extra("helm", HELM)
    return 0


def ansible(rest: list[str]) -> int:
    set_up("requirements.lock")
    set_up_extra("ansible", ANSIBLE)
    return 0


def syncline(rest: list[str]) -> int:
    set_up("requirements.lock")
    return execute(str(BIN / "syncline"), *rest)


COMMANDS = {each.__name__: each for each in (demo, check, test, helm, ansible, syncline, bench)}


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is read by older ones
        say(f"Python is {sys.version.split()[0]}; 3.11 or newer is needed")
        return 2
    command, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if command in COMMANDS:
        return COMMANDS[command](rest)
    if command in ("--help", "-h", "help"):
        print(__doc__)
        return 0
    near = difflib.get_close_matches(command, COMMANDS, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    say(f"no command is named {command!r}: {hint}commands are {', '.join(COMMANDS)}; `--help` says what each does")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
