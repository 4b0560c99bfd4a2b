"""``python -m tools.compare_capture SITE.YML [--roles DIR] [--collections DIR] [-e @FILE] [--installed NAMES]``.

Captures a playbook, then runs it with ansible-playbook alone on a tree of the same files in a root directory of its own
(chroot, real ids, no namespaces but those of mounts and processes; needs root), and compares every captured file with
the one that is there: content, mode and owner. With ``--applied`` the MachineConfig is applied to a pool of simulated
nodes and, by ``syncline node-agent apply``, to a tree; the files there are compared instead. What acts on a running
system (services, packages) has the same stand-ins in both, and ``/usr`` and ``/proc/sys`` are read-only in both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.captured_places import compared

from syncline.assembly.playbooks import PROGRAM
from syncline.sources.ansible.accounts import read_accounts
from syncline.sources.ansible.capturing import Outcome, Wish, capture
from syncline.sources.ansible.judging import File
from syncline.sources.ansible.launching import Play, packages_folder
from syncline.sources.ansible.producing import Output, produce
from syncline.sources.ansible.rooting import ALTERNATIVES, COMMANDS, MODULES, RECORDER, RootRunner, Wanted
from syncline.sources.ansible.skeleton import skeleton

BOUND = ("/usr", "/dev")


def captured(given: argparse.Namespace) -> Outcome:
    site = Path(given.playbook).resolve()
    play = Play(
        "",
        inventory="[worker]\nlocalhost\n",
        variables=given.variables,
        roles=tuple(given.roles),
        collections=tuple(given.collections),
    )
    wanted = Wanted(site.parent, site.name, play, installed=tuple(given.installed.split(",")))
    return capture(RootRunner(Path(PROGRAM)), wanted, Wish("worker", first_boot=True))


def tree(root: Path) -> None:
    """The files of the minimal tree, with the machine's own programs."""
    for node in skeleton():
        path = root / node.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if node.target:
            path.symlink_to(node.target)
            continue
        if node.text is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_text(node.text)
        os.chown(path, node.owner, node.owner)
        path.chmod(node.mode)
    for folder in ("shims", "library", "run/.syncline", "run/systemd/system", ".syncline/private"):
        (root / folder).mkdir(parents=True)
    (root / ".syncline/private/any-unit").touch()
    if ALTERNATIVES.is_dir():
        shutil.copytree(ALTERNATIVES, root / "etc/alternatives", symlinks=True)
    text = RECORDER.read_text()
    for name, place, shebang in (
        *((name, f"shims/{name}", sys.executable) for name in COMMANDS),
        *((f"module {name}", f"library/{name}.py", "/usr/bin/python") for name in MODULES),
    ):
        (root / place).write_text(f"#!{shebang}\n" + text.replace('ROLE = ""', f'ROLE = "{name}"', 1))
        (root / place).chmod(0o755)


def alone(root: Path, given: argparse.Namespace) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook in the root: everything it needs is mounted there for as long as it runs."""
    site = Path(given.playbook).resolve()
    folders = [sys.prefix, sys.base_prefix, str(site.parent), *given.roles, *given.collections]
    mounts = []
    (root / "proc").mkdir()
    for folder in (*BOUND, *folders):
        inside = root / folder.lstrip("/")
        inside.mkdir(parents=True, exist_ok=True)
        mounts.append(f"mount --rbind '{folder}' '{inside}'")
        if folder != "/dev":
            mounts.append(f"mount -o remount,bind,ro '{inside}'")
    mounts += _stand_ins(root)
    proc = f"'{root}/proc'"
    mounts += [
        f"mount -t proc proc {proc}",
        f"mount --bind {proc}/sys {proc}/sys",
        f"mount -o remount,bind,ro {proc}/sys",
    ]
    mounts.append(f"mount --bind '{root}/var/usrlocal' '{root}/usr/local'")
    variables = given.variables | {"ansible_connection": "local", "ansible_package_use": "dnf"}
    (root / "vars.json").write_text(json.dumps(variables))
    (root / ".syncline/private/installed").write_text(given.installed.replace(",", "\n"))
    (root / "hosts").write_text("[worker]\nlocalhost\n")
    command = [
        *("chroot", str(root), "env", "-i", "PATH=/shims:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"),
        f"ANSIBLE_ROLES_PATH={':'.join(given.roles)}",
        f"ANSIBLE_COLLECTIONS_PATH={':'.join(given.collections)}",
        f"ANSIBLE_PYTHON_INTERPRETER={sys.executable}",
        "ANSIBLE_LIBRARY=/library",
        *(sys.executable, "-m", "ansible", "playbook", "-i", "/hosts", "-e", "@/vars.json", str(site)),
    ]
    words = " ".join(f"'{word}'" for word in command)
    # A shell stays process 1: facts take any other name for that of the service manager.
    script = " && ".join(["mount --make-rprivate /", *mounts, words]) + "; exit $?"
    return subprocess.run(["unshare", "-mpf", "sh", "-c", script], capture_output=True, text=True, check=False)


def _stand_ins(root: Path) -> Iterator[str]:
    """Mount them over ansible-core's modules, since roles that say ``ansible.builtin.NAME`` look in no other place."""
    packages = packages_folder()
    assert packages is not None, "the capture has run with it"
    modules = f"{packages}/ansible/modules"
    for name in MODULES:
        yield f"mount --bind '{root}/library/{name}.py' '{root}{modules}/{name}.py'"
    facts = f"{packages}/ansible/module_utils/facts/system/pkg_mgr.py"  # it looks for dnf in one place
    (root / "pkg_mgr").write_text(Path(facts).read_text().replace("'/usr/bin/dnf'", "'/shims/dnf'"))
    yield f"mount --bind '{root}/pkg_mgr' '{root}{facts}'"


def differences(root: Path, files: tuple[File, ...]) -> Iterator[str]:
    texts = {f"/etc/{name}": (root / "etc" / name).read_text() for name in ("passwd", "group", "shadow")}
    known = read_accounts(texts)
    users, groups = {one.name: one.uid for one in known.users}, {one.name: one.gid for one in known.groups}
    for file in files:
        below = file.path.replace("/usr/local/", "/var/usrlocal/", 1).replace("/root/", "/var/roothome/", 1)
        path = root / below.lstrip("/")
        if not path.is_file():
            yield f"{file.path}: ansible-playbook alone leaves no such file"
            continue
        found = path.stat()
        owners = users.get(str(file.user), file.user), groups.get(str(file.group), file.group)
        if path.read_bytes() != file.content:
            yield f"{file.path}: another content"
        if (found.st_mode & 0o7777, found.st_uid, found.st_gid) != (file.mode, *owners):
            yield f"{file.path}: mode or owner {found.st_mode & 0o7777:o} {found.st_uid}:{found.st_gid}"


def compare(given: argparse.Namespace, folder: Path) -> int:
    found = captured(given)
    for refusal in found.refusals:
        sys.stderr.write(f"refused: {refusal}\n")
    alone_root, files = folder / "alone", found.captured.files
    alone_root.mkdir()
    tree(alone_root)
    done = alone(alone_root, given)
    wrong = [] if given.applied else list(differences(alone_root, files))
    sys.stdout.write(done.stdout[-600:] + done.stderr[-400:])
    for one in wrong:
        sys.stdout.write(f"{one}\n")
    count = len(wrong)
    if given.applied:
        produced = produce(found.captured, Output.MACHINE_CONFIG, pool="worker", name="99-worker-ansible")
        for refusal in produced.refusals:
            sys.stderr.write(f"refused on running nodes: {refusal}\n")
        (folder / "tree").mkdir()
        tree(folder / "tree")
        lines, count = compared(found.captured, produced.objects[0], alone_root, folder / "tree")
        sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.write(f"{len(files)} files captured, {count} differences\n")
    if done.returncode:
        sys.stdout.write("ansible-playbook alone failed: what it did not reach is not compared\n")
    return 1 if count or found.refusals or done.returncode else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("playbook")
    parser.add_argument("--roles", action="append", default=[])
    parser.add_argument("--collections", action="append", default=[])
    parser.add_argument("--installed", default="")
    parser.add_argument("--applied", action="store_true", help="compare what the config leaves on nodes and in a tree")
    parser.add_argument("-e", dest="variables", type=lambda text: json.loads(Path(text[1:]).read_text()), default={})
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="compare-capture-"))
    try:
        return compare(given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
