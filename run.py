#!/usr/bin/env python3
"""Set up and run Syncline on a fresh clone. Needs Python 3.11 or newer and git; no root.

    python3 run.py demo [--exit]     a Git repository becomes a running cluster, shown step by step
    python3 run.py demo --example examples/router-drain --virtual     another story, hours in seconds
    python3 run.py test [PYTEST…]    set up everything and pass the tests
    python3 run.py helm              install Helm's library too, for charts (75 MB); a helm program on PATH will do
    python3 run.py syncline …        any syncline command
    python3 run.py bench             the figures of docs/performance.md

The virtual environment is .venv beside this file; it is made again when a lock file changed.
"""

from __future__ import annotations

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
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
LAUNCHER = f"""#!{BIN / "python"}
import sys
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
    launcher = BIN / "syncline"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    mark.write_text(wanted)
    say(f"set up in {time.monotonic() - begun:.1f} s")


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


def set_up_helm() -> None:
    """Helm's library, as requirements-dev.lock pins it; too large to come with the rest."""
    wanted = VENV / "helm.lock"
    wanted.write_text(pin_of("helm-python-sdk", "requirements-dev.lock"))
    say("installing helm-python-sdk")
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--require-hashes", "--only-binary", ":all:", "-r", str(wanted)], check=True)


def execute(*command: str) -> int:
    environment = dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    try:
        return subprocess.call(command, cwd=ROOT, env=environment)
    except KeyboardInterrupt:
        return 130


def test(rest: list[str]) -> int:
    """Lint, types and tests, in that order; all are run, any failure fails."""
    set_up("requirements-dev.lock")
    set_up_javascript()
    checks = [
        ("ruff", [str(BIN / "ruff"), "check", "."]),
        ("mypy", [str(BIN / "mypy"), "--strict", "-p", "syncline"]),
        ("pytest", [str(BIN / "python"), "-m", "pytest", "-n", "2", *rest]),
    ]
    failed = [name for name, command in checks if execute(*command) != 0]
    say(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is read by older ones
        say(f"Python is {sys.version.split()[0]}; 3.11 or newer is needed")
        return 2
    command, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if command == "demo":
        set_up("requirements.lock")
        return execute(str(BIN / "syncline"), "demo", *rest)
    if command == "test":
        return test(rest)
    if command == "bench":
        set_up("requirements-dev.lock")
        return execute(str(BIN / "python"), "-m", "bench", *rest)
    if command == "helm":
        set_up("requirements.lock")
        set_up_helm()
        return 0
    if command == "syncline":
        set_up("requirements.lock")
        return execute(str(BIN / "syncline"), *rest)
    print(__doc__)
    return 0 if command in ("--help", "-h") else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
