"""Builds the Ansible collection, installs it, and runs ``ansible-test sanity`` on it, from this checkout.

    python3 -m tools.ansible_sanity [--only TEST ...] [--programs FOLDER]

``ansible-test`` works in a folder ``ansible_collections/NAMESPACE/NAME``, so the collection is copied there. Its tests
run in virtual environments that it makes (``--venv``) for the Python that runs this, with its own pinned requirements
from the package index. It downloads nothing else: pip comes from the interpreter's ensurepip.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "integrations" / "ansible"
PLACE = Path("ansible_collections", "syncline", "syncline")
PIP = """import subprocess, sys
subprocess.check_call([sys.executable, "-m", "ensurepip"])
packages = [word for word in sys.argv[1:] if not word.startswith("--no-")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--upgrade", *packages]))
"""
"""Stands where ansible-test keeps its downloaded bootstrap script of pip."""
PIP_VERSION = "24_2"
PLUGINS = {"module": "plugins/modules", "inventory": "plugins/inventory", "callback": "plugins/callback"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEST", help="this sanity test; repeatable")
    parser.add_argument("--programs", type=Path, default=Path(sys.executable).parent, help="folder of ansible-test")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="syncline-collection-") as folder:
        scratch = Path(folder)
        here = scratch / PLACE
        shutil.copytree(SOURCE, here, ignore=shutil.ignore_patterns("__pycache__", "output"))
        environment = _environment(scratch, given.programs)
        return max(_installed(here, scratch, environment), _sanity(here, given.only, environment))


def _environment(scratch: Path, programs: Path) -> dict[str, str]:
    """Return our environment with a home of its own, in which pip's bootstrap script lies already."""
    cache = scratch / "home/.ansible/test/cache"
    cache.mkdir(parents=True)
    (cache / f"get_pip_{PIP_VERSION}.py").write_text(PIP)
    settings = {key[4:].lower(): text for key, text in os.environ.items() if key.startswith("PIP_")}
    if settings:  # ansible-test hands none of these variables on to pip
        file = scratch / "home/.config/pip/pip.conf"
        file.parent.mkdir(parents=True)
        file.write_text("[global]\n" + "".join(f"{key.replace('_', '-')} = {text}\n" for key, text in settings.items()))
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "PYTHON"))}
    path = os.pathsep.join([str(programs), kept.get("PATH", os.defpath)])
    return kept | {"HOME": str(scratch / "home"), "PATH": path, "ANSIBLE_COLLECTIONS_PATH": str(scratch / "installed")}


def _installed(here: Path, scratch: Path, environment: dict[str, str]) -> int:
    """Build the archive, install it, and read the documentation of each plugin of what was installed."""
    steps = [
        ["ansible-galaxy", "collection", "build", str(here), "--output-path", str(scratch)],
        ["ansible-galaxy", "collection", "install", "--offline", "-p", str(scratch / "installed"), ""],
    ]
    for kind, folder in PLUGINS.items():
        names = [f"syncline.syncline.{one.stem}" for one in sorted((here / folder).glob("*.py"))]
        steps.append(["ansible-doc", "-t", kind, "--json", *names])
    for step in steps:
        archives = [str(one) for one in scratch.glob("*.tar.gz")]
        words = [word or archives[0] for word in step]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        print(" ".join(words[:3]), "ok" if done.returncode == 0 else f"failed\n{done.stdout}{done.stderr}")
        if done.returncode:
            return 1
    return 0


def _sanity(here: Path, only: list[str], environment: dict[str, str]) -> int:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    words = ["ansible-test", "sanity", "--venv", "--python", version, "--color", "no", "-v"]
    for test in only:
        words += ["--test", test]
    return subprocess.run(words, cwd=here, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
