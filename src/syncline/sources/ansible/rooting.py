"""Runs a play in a throwaway root: :class:`RootRunner`.

The root is made by a program that ``assembly`` names (``assembly/playbooks/``): namespaces of its own, memory of
bounded size, ``/usr`` read-only, no network. What goes in is one archive: the tree, the playbook's folder and the
private folder of the child. What comes out are lines, read by ``observing.py``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO

from syncline.base.masking import bounded
from syncline.base.removal import remove_tree
from syncline.base.scratch import credentials_folder, scratch, work_folder
from syncline.sources.ansible.launching import FIX, Play, end_tree, packages_folder, prepare
from syncline.sources.ansible.observing import Run, observe_run
from syncline.sources.ansible.skeleton import skeleton
from syncline.sources.errors import Problem, SourceError

OURS = "/.syncline"
PRIVATE, PLAY, BASE, PACKAGES, HOST, SHIMS, INVENTORY = (
    f"{OURS}/{name}" for name in ("private", "play", "base", "packages", "host", "shims", "inventory")
)
BESIDE = ("group_vars", "host_vars")
"""Folders that Ansible reads beside an inventory."""
RECORDER = Path(__file__).parent / "captured-root" / "recorder.py"
KEPT_BYTECODE = RECORDER.with_name("kept_bytecode.py")
RECORDED = "/run/.syncline/recorded"
SYSTEMD = "/run/systemd/system"
"""By this folder programs, and facts, know that systemd runs."""
ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow")
MODULES = ("systemd", "systemd_service", "service", "sysvinit", "dnf", "dnf5", "apt", "service_facts", "package_facts")
COMMANDS = (
    *(
        "systemctl",
        "rpm-ostree",
        "grubby",
        "dnf",
        "yum",
        "apt-get",
        "rpm",
        "sysctl",
        "modprobe",
        "restorecon",
        "udevadm",
    ),
    *("reboot", "shutdown", "poweroff", "firewall-cmd", "nmcli", "mount", "umount", "setenforce", "hostnamectl"),
    *("timedatectl", "localectl", "loginctl", "crictl", "podman", "docker", "oc"),
)
LIBRARIES = (
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    *(f"{one}/{os.uname().machine}-linux-gnu" for one in ("/lib", "/usr/lib")),
)
NOT_COPIED = ("usr", "proc", "sys", "dev", "run", "tmp", "boot", "sysroot", "ostree", "var/tmp", "var/cache", "var/log")
CANNOT = 125
SAID = 4096


@dataclass(frozen=True, slots=True)
class RootLimits:
    """Bounds of one captured run."""

    wall_s: float = 900.0
    cpu_s: int = 600
    memory_bytes: int = 2 * 1024**3
    tmpfs_bytes: int = 512 * 1024**2
    inodes: int = 65536
    file_bytes: int = 256 * 1024**2
    processes: int = 256
    output_bytes: int = 128 * 1024**2
    tree_bytes: int = 8 * 1024**3
    play_bytes: int = 256 * 1024**2
    files: int = 400_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run: the playbook, as a path below ``folder`` (on this machine), and how."""

    folder: Path
    playbook: str
    play: Play
    """Its ``playbook`` is filled in here."""
    inventory: Path | None = None
    """A file, with the variables beside it, or a folder, in every form that Ansible knows; None: the play's text."""
    tree: Path | None = None
    """A folder or a tar archive of the pool's OS; None: the minimal tree."""
    installed: tuple[str, ...] = ()
    facts: bytes = field(default=b"", repr=False)
    """What ``setup`` answers in the place of the tree's facts, as :func:`~syncline.sources.ansible.facts.facts_of`
    makes it; empty: those of the tree are gathered."""
    network: bool = False


@dataclass(frozen=True, slots=True)
class RootRunner:
    """``launcher``: the program that makes the root (``assembly/playbooks/__main__.py``)."""

    launcher: Path
    limits: RootLimits = RootLimits()
    niceness: int = 0

    def run(self, wanted: Wanted) -> Run:
        """Run a play once. Raises :class:`SourceError` if no root can be made; a play that fails is a report."""
        packages = packages_folder()
        if packages is None:
            raise SourceError(Problem.UNSUPPORTED, "ansible-core is not installed beside Syncline", fix=FIX)
        with scratch(credentials_folder()) as private, _made_folder() as made, tempfile.TemporaryFile() as archive:
            for name in ("root", "modules"):
                (made / name).mkdir(mode=0o755)
            shared = _shared(wanted.play)
            variables = dict(wanted.play.variables) | {"ansible_package_use": "dnf"}
            play = replace(
                wanted.play,
                playbook=f"{PLAY}/{wanted.playbook}",
                inventory=_inventory_inside(wanted) or wanted.play.inventory,
                interpreter=f"{PRIVATE}/python",
                variables=variables,
                collections=tuple(inside for _, inside in shared["collections"]),
                roles=tuple(inside for _, inside in shared["roles"]),
            )
            program = tuple(_interpreter("-s", "-c", _MAIN, packages_inside(packages)))
            prepared = prepare(play, private, program, seen_as=PRIVATE)
            env = prepared.env | {"PATH": f"{SHIMS}:{prepared.env['PATH']}"}
            self._write_private(private, wanted)
            binds = [*_binds(packages), *_overridden(made / "modules", bool(wanted.facts))]
            binds += [[outside, inside] for pairs in shared.values() for outside, inside in pairs]
            with _tree(wanted.tree, self.limits) as (usr, members):
                binds.append([usr, "/usr"])
                self._pack(archive, wanted, private, members)
                spec = self._spec(wanted, made / "root", archive.fileno(), binds, list(prepared.argv), env)
                lines, ended, said = self._launched(spec, archive.fileno())
        return observe_run(lines, f"{PLAY}/{wanted.playbook}".rpartition("/")[0], ended, said)

    def _write_private(self, private: Path, wanted: Wanted) -> None:
        python, kept = " ".join(_quoted(_interpreter())), f"{PRIVATE}/{KEPT_BYTECODE.name}"
        _script(
            private / "python",
            f"""#!/bin/sh
case "$1" in */AnsiballZ_*) exec {python} {kept} "$@" ;; esac
exec {python} "$@"
""",
        )
        (private / KEPT_BYTECODE.name).write_text(KEPT_BYTECODE.read_text(encoding="utf-8"))
        (private / "bytecode").mkdir(mode=0o700)
        (private / "installed").write_text("\n".join(wanted.installed))
        if wanted.tree is None:
            (private / "any-unit").touch()
        if wanted.facts:
            (private / "facts").write_bytes(wanted.facts)

    def _pack(self, archive: IO[bytes], wanted: Wanted, private: Path, members: Iterator[_Member]) -> None:
        """Write the archive of the root: the tree, then what is ours."""
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for info, content in members:
                tar.addfile(info, io.BytesIO(content) if content is not None else None)
            for folder in (OURS, SHIMS, os.path.dirname(RECORDED), SYSTEMD, "/tmp", "/var/tmp"):
                tar.addfile(_info(folder, tarfile.DIRTYPE, 0o1777 if folder.endswith("tmp") else 0o755))
            for name in COMMANDS:
                script = f"#!{PRIVATE}/python\n{_as(name)}".encode()
                tar.addfile(_info(f"{SHIMS}/{name}", tarfile.REGTYPE, 0o755, len(script)), io.BytesIO(script))
            most, files = self.limits.play_bytes, self.limits.files
            for info, content in chain(
                _folder_members(private, PRIVATE, most, files),
                _folder_members(wanted.folder, PLAY, most, files),
                _inventory_members(wanted, most, files),
            ):
                tar.addfile(_ours(info), io.BytesIO(content) if content is not None else None)
        archive.flush()
        archive.seek(0)

    def _spec(
        self, wanted: Wanted, root: Path, archive: int, binds: list[list[str]], argv: list[str], env: dict[str, str]
    ) -> dict[str, object]:
        limits = self.limits
        return {
            "argv": argv,
            "env": env,
            "cwd": f"{PLAY}/{wanted.playbook}".rpartition("/")[0],
            "root": str(root),
            "tree": archive,
            "binds": binds,
            "limits": {
                "RLIMIT_AS": limits.memory_bytes,
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": limits.cpu_s,
                "RLIMIT_FSIZE": limits.file_bytes,
                "RLIMIT_NOFILE": 1024,
                "RLIMIT_NPROC": limits.processes,
            },
            "whole": {"memory_bytes": limits.memory_bytes, "cpu_s": limits.cpu_s, "processes": limits.processes},
            "tmpfs_bytes": limits.tmpfs_bytes,
            "inodes": limits.inodes,
            "network": wanted.network,
            "niceness": self.niceness,
            "slot": os.getpid() + threading.get_ident(),
            "recorded": RECORDED,
            "kept": ACCOUNTS,
        }

    def _launched(self, spec: dict[str, object], archive: int) -> tuple[list[bytes], str, str]:
        """Return the lines, why the run was ended, and the end of the error output."""
        ended = list[str]()
        with tempfile.TemporaryFile() as complaints:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(self.launcher)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                pass_fds=(archive,),
                start_new_session=True,
            )
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (self.limits.file_bytes, self.limits.file_bytes))

            def expire() -> None:
                ended.append(f"it took longer than {self.limits.wall_s:g} seconds")
                _end(child)

            timer = threading.Timer(self.limits.wall_s, expire)
            timer.daemon = True
            timer.start()
            try:
                output = self._read(child, spec)
            finally:
                timer.cancel()
                end_tree(child.pid)
                child.wait()
            complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - SAID))
            said = bounded(" ".join(complaints.read().decode("utf-8", "replace").split()))
        if len(output) > self.limits.output_bytes:
            ended.append(f"it reports more than {self.limits.output_bytes} bytes")
        if "[syncline] no root" in said and not ended:
            why = said.rpartition("[syncline] no root for the playbook: ")[2]
            message = f"playbooks are captured in a root of their own, and this machine makes none: {why}"
            raise SourceError(
                Problem.UNSUPPORTED, message, fix="allow unprivileged user namespaces, or capture as root"
            )
        lines = output.split(b"\n")
        return lines[:-1], ended[0] if ended else "", said

    def _read(self, child: subprocess.Popen[bytes], spec: dict[str, object]) -> bytes:
        """Hand over what to do, and read the lines. The child's input stays open as long as the play may live."""
        assert child.stdin is not None, "it is a pipe"
        assert child.stdout is not None, "it is a pipe"
        with child.stdin, child.stdout:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(json.dumps(spec).encode() + b"\n")
                child.stdin.flush()
            output = child.stdout.read(self.limits.output_bytes + 1)
            if len(output) > self.limits.output_bytes:
                _end(child)
            child.wait()
        return output


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the root with all that runs there: the launcher waits until the kernel has removed it."""
    assert child.stdin is not None, "it is a pipe"
    with contextlib.suppress(OSError):
        child.stdin.close()


_MAIN = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); sys.argv[0] = 'ansible'; "
    "sys.argv.insert(1, 'playbook'); runpy.run_module('ansible', run_name='__main__', alter_sys=True)"
)
"""Packages are found by this path alone, so that programs of the tree in Python do not see ours."""


def packages_inside(folder: str) -> str:
    """Where the folder of our packages is in the root."""
    base = os.path.realpath(sys.base_prefix)
    real = os.path.realpath(folder)
    return BASE + real.removeprefix(base) if real.startswith(f"{base}/") else PACKAGES


def _shared(play: Play) -> dict[str, list[tuple[str, str]]]:
    """Folders of collections and roles, and where the root has them, read-only."""
    return {
        kind: [(path, f"{OURS}/{kind}/{at}") for at, path in enumerate(paths)]
        for kind, paths in (("collections", play.collections), ("roles", play.roles))
    }


def _binds(packages: str) -> list[list[str]]:
    """Our interpreter, its packages, and the libraries that it needs, at places of their own: the tree has others."""
    found = [[sys.base_prefix, BASE]]
    if packages_inside(packages) == PACKAGES:
        found.append([packages, PACKAGES])
    found += [
        [os.path.realpath(path), HOST + path]
        for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
        if os.path.isdir(path)
    ]
    return found


def _overridden(folder: Path, facts: bool) -> list[list[str]]:
    """Modules that act on a running system, in the place of ansible-core's; and facts find our package manager."""
    packages = packages_folder()
    assert packages is not None, "it was found before"
    place = f"{packages_inside(packages)}/ansible/modules"
    found = []
    for name in (*MODULES, *("setup",) * facts):
        path = folder / f"{name}.py"
        path.write_text(f"#!/usr/bin/python\n{_as(f'module {name}')}", encoding="utf-8")
        path.chmod(0o644)
        found.append([str(path), f"{place}/{name}.py"])
    detection = "ansible/module_utils/facts/system/pkg_mgr.py"
    text = (Path(packages) / detection).read_text(encoding="utf-8")
    (folder / "pkg_mgr").write_text(text.replace("'/usr/bin/dnf'", f"'{SHIMS}/dnf'"), encoding="utf-8")
    return [*found, [str(folder / "pkg_mgr"), f"{packages_inside(packages)}/{detection}"]]


def _as(name: str) -> str:
    """The recorder under one of its names."""
    return RECORDER.read_text(encoding="utf-8").replace('ROLE = ""', f'ROLE = "{name}"', 1)


def _interpreter(*arguments: str) -> list[str]:
    """The command of our interpreter in the root: by its own loader and libraries."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    libraries = ":".join([f"{BASE}/lib", *(HOST + path for path in LIBRARIES)])
    program = f"{BASE}/bin/{version}"
    loader = HOST + _loader()
    return [loader, "--argv0", program, "--library-path", libraries, program, *arguments]


def _loader() -> str:
    """The dynamic loader that our interpreter names (``PT_INTERP``)."""
    with open(os.path.realpath(sys.executable), "rb") as file:
        head = file.read(4096)
    at = head.find(b"/lib")
    found = head[at : head.index(b"\0", at)].decode() if at >= 0 else ""
    if not found:
        raise SourceError(Problem.UNSUPPORTED, "this Python is linked statically; capture needs one with a loader")
    return found


def _quoted(words: list[str]) -> list[str]:
    return [f"'{word}'" for word in words]


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


# -- the archive -----------------------------------------------------------------------------------------------------

_Member = tuple[tarfile.TarInfo, bytes | None]


def _info(path: str, kind: bytes, mode: int, size: int = 0, owner: int = 0, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(path.lstrip("/"))
    info.type, info.mode, info.size, info.uid, info.gid, info.linkname = kind, mode, size, owner, owner, target
    return info


def _ours(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    return info


@contextlib.contextmanager
def _made_folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="syncline-capture-", dir=work_folder()))
    try:
        yield made
    finally:
        remove_tree(made)


@contextlib.contextmanager
def _tree(tree: Path | None, limits: RootLimits) -> Iterator[tuple[str, Iterator[_Member]]]:
    """Yield the folder for ``/usr`` and the members of the rest."""
    if tree is None:
        yield "/usr", _skeleton_members()
    elif tree.is_dir():
        if not (tree / "usr").is_dir():
            raise SourceError(Problem.INVALID, f"{tree}: not a root file system, it has no usr", field="--tree")
        members = _folder_members(tree, "/", limits.tmpfs_bytes, limits.files, NOT_COPIED)
        yield str(tree / "usr"), chain(members, _local_members(tree, limits))
    else:
        with _made_folder() as made:
            members = _archive_members(tree, made, limits)
            yield str(made / "usr"), chain(members, _local_members(made, limits))


def _local_members(top: Path, limits: RootLimits) -> Iterator[_Member]:
    """``/usr/local`` of a tree that is no CoreOS, where it is no link: what nodes write there lies below ``/var``."""
    local = top / "usr/local"
    if local.is_dir() and not local.is_symlink():
        yield from _folder_members(local, "/var/usrlocal", limits.tmpfs_bytes, limits.files)


ALTERNATIVES = Path("/etc/alternatives")
"""Links by which some systems choose among programs of ``/usr``, which is this machine's."""


def _skeleton_members() -> Iterator[_Member]:
    if ALTERNATIVES.is_dir():
        yield _info(str(ALTERNATIVES), tarfile.DIRTYPE, 0o755), None
        for each in sorted(ALTERNATIVES.iterdir()):
            if each.is_symlink():
                yield _info(str(each), tarfile.SYMTYPE, 0o777, target=os.readlink(each)), None
    for node in skeleton():
        if node.target:
            yield _info(node.path, tarfile.SYMTYPE, 0o777, target=node.target), None
        elif node.text is None:
            yield _info(node.path, tarfile.DIRTYPE, node.mode, owner=node.owner), None
        else:
            content = node.text.encode()
            yield _info(node.path, tarfile.REGTYPE, node.mode, len(content), node.owner), content


def _folder_members(top: Path, target: str, most: int, files: int, without: tuple[str, ...] = ()) -> Iterator[_Member]:
    """Yield what is below a folder; nothing is followed, and what is neither file, folder nor link is left out."""
    count, size = 0, 0
    base = target.rstrip("/")
    yield _info(base or "/", tarfile.DIRTYPE, 0o755), None
    for folder, folders, names in os.walk(top):
        below = os.path.relpath(folder, top).removeprefix(".").lstrip("/")
        folders[:] = sorted(each for each in folders if f"{below}/{each}".lstrip("/") not in (*without, ".git"))
        for name in (*folders, *sorted(names)):
            path = os.path.join(folder, name)
            found = os.lstat(path)
            count += 1
            info = _info(f"{base}/{below}/{name}".replace("//", "/"), tarfile.REGTYPE, found.st_mode & 0o7777)
            info.uid, info.gid = found.st_uid, found.st_gid
            if os.path.islink(path):
                info.type, info.linkname, content = tarfile.SYMTYPE, os.readlink(path), None
            elif os.path.isdir(path):
                info.type, content = tarfile.DIRTYPE, None
            elif os.path.isfile(path):
                content = _read(path, most + 1)
                info.size = len(content)
                size += info.size
            else:
                continue
            if count > files or size > most:
                message = f"{top}: more than {files} files or {most} bytes"
                raise SourceError(Problem.TOO_LARGE, message, fix="give the playbook a folder of its own")
            yield info, content
    for name in without:
        if name in ("sys", "dev", "run", "boot", "usr") and not os.path.islink(top / name):
            yield _info(f"/{name}", tarfile.DIRTYPE, 0o755), None


def _inventory_inside(wanted: Wanted) -> str:
    """Where the root has the inventory: in the playbook's folder if it lies there, else in a folder of its own."""
    if wanted.inventory is None:
        return ""
    if wanted.inventory.is_relative_to(wanted.folder):
        return f"{PLAY}/{wanted.inventory.relative_to(wanted.folder)}"
    return f"{INVENTORY}/{wanted.inventory.name}"


def _inventory_members(wanted: Wanted, most: int, files: int) -> Iterator[_Member]:
    given = wanted.inventory
    if given is None or given.is_relative_to(wanted.folder):
        return
    yield _info(INVENTORY, tarfile.DIRTYPE, 0o755), None
    if given.is_dir():
        yield from _folder_members(given, f"{INVENTORY}/{given.name}", most, files)
        return
    with given.open("rb") as file:
        content = file.read(most)
    yield _info(f"{INVENTORY}/{given.name}", tarfile.REGTYPE, given.stat().st_mode & 0o777, len(content)), content
    for name in BESIDE:
        if (given.parent / name).is_dir():
            yield from _folder_members(given.parent / name, f"{INVENTORY}/{name}", most, files)


def _read(path: str, most: int) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read(most)
    except OSError as error:
        fix = "capture as root, or unpack what it is of as this user"
        raise SourceError(Problem.INVALID, f"{path} cannot be read ({error.strerror})", fix=fix) from None


def _archive_members(path: Path, made: Path, limits: RootLimits) -> Iterator[_Member]:
    """Yield the members of an archive beside ``/usr``, which is unpacked on the disk, with names that stay below it."""
    count = size = 0
    (made / "usr").mkdir(mode=0o755)
    if not hasattr(tarfile, "tar_filter"):
        message = "this Python (before 3.11.4) unpacks no archive safely"
        raise SourceError(Problem.UNSUPPORTED, message, field="--tree", fix="unpack it and give the folder")
    try:
        with tarfile.open(path, mode="r|*") as archive:
            for member in archive:
                name = os.path.normpath(member.name).lstrip("/")
                count, size = count + 1, size + member.size
                if count > limits.files or size > limits.tree_bytes:
                    message = f"{path}: more than {limits.files} files or {limits.tree_bytes} bytes"
                    raise SourceError(Problem.TOO_LARGE, message, field="--tree")
                if name.startswith("usr/"):
                    with contextlib.suppress(tarfile.FilterError):
                        archive.extract(member, made, filter="tar")
                elif name.split("/")[0] not in ("proc", "sys", "dev", "run", "tmp", "boot", ".", "usr"):
                    file = archive.extractfile(member) if member.isfile() else None
                    yield member.replace(name=name, deep=False), file.read() if file else None
    except (tarfile.TarError, OSError) as error:
        raise SourceError(Problem.INVALID, f"{path}: not a readable tar archive ({error})", field="--tree") from None
