"""File operations below a root directory, as a process in that root would see them; used by the Linux host.

Nothing above the root is read or written, whatever links it contains: paths are walked name by name on descriptors, no
name is opened through a link, and links are resolved here, absolute ones from the root. A directory that is replaced by
a link during a walk is refused. So is the target of a link that another user owns, unless that user owns the target
too: root would write there for them. Writes are atomic (draft, ``fsync``, rename). Every change, removals and new
directories included, is on disk when the call returns.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from syncline.machineconfig.agent.host import MAX_FILE, HostError, Stat

DRAFT = ".syncline-draft"
"""Name of the draft file in each directory; the next write there replaces one that a crash left."""
MAX_LINKS = 40
MAX_DEPTH = 64
MAX_PATH = 4096
"""Maximum length of a path; Linux's limit."""
READ_BYTES = 64 << 10
MAX_NOTES = 100
NULL = "/dev/null"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LinuxRoot:
    """Files below a root, for one thread. ``notes``: what could not be done as requested, each once."""

    def __init__(self, root: Path) -> None:
        """Open the root. Raises HostError if ``root`` is no directory."""
        self.root = root
        self.notes: dict[str, None] = {}
        self._user, self._group = os.geteuid(), os.getegid()
        with _errors_named("open", str(root)):
            os.close(os.open(root, _DIRECTORY & ~os.O_NOFOLLOW))

    # -- reading ------------------------------------------------------------------------------------------------------

    def stat(self, path: str) -> Stat | None:
        with _errors_named("lstat", path):
            try:
                with self._walk(path) as (parent, name):
                    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                    target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(found.st_mode) else ""
            except FileNotFoundError:
                return None
        kind = "dir" if stat.S_ISDIR(found.st_mode) else "symlink" if target else "file"
        return Stat(kind, _go_mode(found.st_mode), found.st_uid, found.st_gid, target)

    def exists(self, path: str) -> bool:
        if path == NULL:
            return True
        with _errors_named("stat", path):
            try:
                with self._walk(path, follow=True) as (parent, name):
                    os.stat(name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return False
        return True

    def read(self, path: str) -> bytes:
        """Return the content of a regular file of at most 64 MiB."""
        with _errors_named("open", path), self._walk(path, follow=True) as (parent, name):
            opened = os.open(name, _FILE, dir_fd=parent)
        try:
            kind = stat.S_IFMT(os.fstat(opened).st_mode)
            if kind != stat.S_IFREG:
                raise HostError("read", path, "is a directory" if kind == stat.S_IFDIR else "not a regular file")
            with _errors_named("read", path), open(opened, "rb", closefd=False) as file:
                found = _bounded(file)
        finally:
            os.close(opened)
        if len(found) > MAX_FILE:
            raise HostError("read", path, f"more than {MAX_FILE >> 20} MiB; put back what belongs there")
        return found

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty if there is no directory."""
        with contextlib.suppress(OSError), self._directory(path) as opened:
            return sorted(os.listdir(opened))
        return []

    def stamp(self, path: str) -> tuple[int, ...]:
        """Return a value that differs after every change of the entry itself; empty if there is none."""
        try:
            with self._walk(path) as (parent, name):
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (OSError, ValueError):
            return ()
        return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
        parents: int = 0o755,
    ) -> None:
        self.make_directories(posixpath.dirname(path), parents)
        with _errors_named("open", path), self._walk(path) as (parent, name):
            self._refuse_directory(path, parent, name)
            with self._draft(parent) as draft:
                with open(os.open(draft, _CREATE, 0o600, dir_fd=parent), "wb") as file:
                    file.write(content)
                    file.flush()
                    self._own(path, file.fileno(), owner or (0, 0))
                    os.fchmod(file.fileno(), mode)
                    os.fsync(file.fileno())
                _take_place(parent, name)

    def copy(self, source: str, target: str) -> None:
        with _errors_named("cp", source), self._walk(source) as (parent, name):
            os.stat(name, dir_fd=parent, follow_symlinks=False)
            self.make_directories(posixpath.dirname(target))
            with self._walk(target) as (other, to):
                self._copy_entry(target, (parent, name), (other, to), MAX_DEPTH)

    def link(self, path: str, target: str) -> None:
        with _errors_named(f"symlink {target}", path), self._walk(path) as (parent, name):
            self._refuse_directory(path, parent, name)
            with self._draft(parent) as draft:
                os.symlink(target, draft, dir_fd=parent)
                _take_place(parent, name)

    def remove(self, path: str) -> None:
        with _errors_named("remove", path), self._walk(path) as (parent, name):
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            (os.rmdir if stat.S_ISDIR(found.st_mode) else os.unlink)(name, dir_fd=parent)
            os.fsync(parent)

    def remove_all(self, path: str) -> None:
        with _errors_named("remove", path), contextlib.suppress(FileNotFoundError), self._walk(path) as (parent, name):
            if name == ".":
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
            _remove_entry(name, parent)
            os.fsync(parent)

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        """Create missing directories with ``mode``."""
        try:
            with self._walk(path, follow=True, make=mode) as (parent, name):
                try:
                    _make_directory(name, parent, mode)
                except FileExistsError:
                    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
        except (OSError, ValueError) as error:
            raise HostError("mkdir", self._obstacle(path), _reason(error)) from error

    def give(self, path: str, uid: int, gid: int) -> None:
        """Change the owner of a directory, if permitted."""
        with _errors_named("chown", path), self._directory(path) as opened:
            self._own(path, opened, (uid, gid))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _obstacle(self, path: str) -> str:
        """Return the first component of ``path`` that is not a directory."""
        parts = [part for part in path.split("/") if part]
        for at in range(len(parts)):
            head = "/" + "/".join(parts[: at + 1])
            try:
                with self._directory(head):
                    continue
            except (OSError, ValueError):
                return head
        return path

    @contextlib.contextmanager
    def _directory(self, path: str) -> Iterator[int]:
        with self._walk(path, follow=True) as (parent, name):
            opened = os.open(name, _DIRECTORY, dir_fd=parent)
            try:
                yield opened
            finally:
                os.close(opened)

    @contextlib.contextmanager
    def _walk(self, path: str, *, follow: bool = False, make: int | None = None) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the entry's directory and the entry's name there (``.`` if the path ends in ``..``).
        ``follow``: resolve a final link. ``make``: create missing parents with this mode."""
        stack = [os.open(self.root, _DIRECTORY & ~os.O_NOFOLLOW)]
        try:
            yield self._find(stack, path, follow, make)
        finally:
            for opened in stack:
                os.close(opened)

    def _find(self, stack: list[int], path: str, follow: bool, make: int | None) -> tuple[int, str]:
        if len(os.fsencode(path)) >= MAX_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        rest = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        links, own, strangers = 0, len(rest), set[int]()
        while rest:
            name = rest.pop()
            if name == "..":
                if len(stack) > 1:
                    os.close(stack.pop())
                continue
            here = stack[-1]
            link = _target(name, here) if rest or follow else None
            if link is not None:
                target, owner = link
                strangers |= {owner} - {0, self._user}
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if target.startswith("/"):
                    while len(stack) > 1:
                        os.close(stack.pop())
                own = min(own, len(rest))
                rest += [part for part in reversed(target.split("/")) if part not in ("", ".")]
                continue
            if not rest:
                if make is not None and len(rest) >= own and _is_missing(name, here):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))  # a link whose target does not exist
                self._refuse_others(strangers, here)
                return here, name
            if make is not None and len(rest) < own and _is_missing(name, here):
                self._refuse_others(strangers, here)
                with contextlib.suppress(FileExistsError):
                    _make_directory(name, here, make)
            stack.append(os.open(name, _DIRECTORY, dir_fd=here))
        self._refuse_others(strangers, stack[-1])
        return stack[-1], "."

    def _refuse_others(self, strangers: set[int], here: int) -> None:
        """Refuse a directory reached through links that other users (``strangers``) own, unless they own it."""
        owner = os.fstat(here).st_uid
        if self._user == 0 and strangers - {owner}:
            raise OSError(f"a link of user {min(strangers)} leads to a directory of user {owner}; remove the link")

    def _refuse_directory(self, path: str, parent: int, name: str) -> None:
        if not _is_missing(name, parent) and stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise HostError("rename", path, "file exists")

    @contextlib.contextmanager
    def _draft(self, parent: int) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError):
            _remove_entry(DRAFT, parent)
        try:
            yield DRAFT
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(DRAFT, dir_fd=parent)
            raise

    def _own(self, path: str, opened: int, owner: tuple[int, int]) -> None:
        if self._user == 0:
            os.fchown(opened, *owner)
        elif owner != (self._user, self._group):
            self.note(f"{path}: owner {owner[0]}:{owner[1]} is left out; only root can give files away")

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes[text] = None

    def _copy_entry(self, path: str, source: tuple[int, str], target: tuple[int, str], depth: int) -> None:
        (parent, name), (other, to) = source, target
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            if depth == 0:
                raise HostError("cp", path, f"more than {MAX_DEPTH} directories deep")
            self._copy_directory(path, source, target, depth)
            return
        self._refuse_directory(path, other, to)
        with self._draft(other) as draft:
            if stat.S_ISLNK(found.st_mode):
                os.symlink(os.readlink(name, dir_fd=parent), draft, dir_fd=other)
                if self._user == 0:
                    os.chown(draft, found.st_uid, found.st_gid, dir_fd=other, follow_symlinks=False)
            elif stat.S_ISREG(found.st_mode):
                with (
                    open(os.open(name, _FILE, dir_fd=parent), "rb") as old,
                    open(os.open(draft, _CREATE, 0o600, dir_fd=other), "wb") as new,
                ):
                    shutil.copyfileobj(old, new)
                    new.flush()
                    self._own(path, new.fileno(), (found.st_uid, found.st_gid))
                    os.fchmod(new.fileno(), stat.S_IMODE(found.st_mode))
                    os.utime(new.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
                    os.fsync(new.fileno())
            else:
                raise HostError("cp", path, "neither a file nor a directory nor a link")
            _take_place(other, to)

    def _copy_directory(self, path: str, source: tuple[int, str], target: tuple[int, str], depth: int) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(target[1], 0o700, dir_fd=target[0])
            os.fsync(target[0])
        inside = os.open(source[1], _DIRECTORY, dir_fd=source[0])
        try:
            outside = os.open(target[1], _DIRECTORY, dir_fd=target[0])
            try:
                for name in os.listdir(inside):
                    self._copy_entry(f"{path}/{name}", (inside, name), (outside, name), depth - 1)
                found = os.fstat(inside)
                self._own(path, outside, (found.st_uid, found.st_gid))
                os.fchmod(outside, stat.S_IMODE(found.st_mode))
                os.fsync(outside)
            finally:
                os.close(outside)
        finally:
            os.close(inside)


def _bounded(file: BinaryIO) -> bytes:
    """Read at most one byte more than the limit; in parts, since entries of /proc reject large reads."""
    parts, left = [], MAX_FILE + 1
    while left > 0 and (part := file.read(min(left, READ_BYTES))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


_GO_BITS = ((stat.S_ISUID, 1 << 23), (stat.S_ISGID, 1 << 22), (stat.S_ISVTX, 1 << 20))
_GO_KINDS = {stat.S_IFSOCK: 1 << 24, stat.S_IFIFO: 1 << 25, stat.S_IFBLK: 1 << 26, stat.S_IFCHR: 1 << 26 | 1 << 21}


def _go_mode(mode: int) -> int:
    """Return permissions and file type as bits of Go's ``FileMode``, which comparisons print."""
    special = sum(bit for ours, bit in _GO_BITS if mode & ours)
    return mode & 0o777 | special | _GO_KINDS.get(stat.S_IFMT(mode), 0)


def _target(name: str, here: int) -> tuple[str, int] | None:
    """Return the target of a link and the uid of its owner; None if ``name`` is missing or no link."""
    try:
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(opened)
        return (os.readlink("", dir_fd=opened), found.st_uid) if stat.S_ISLNK(found.st_mode) else None
    finally:
        os.close(opened)


def _remove_entry(name: str, parent: int) -> None:
    """Remove an entry with everything in it."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
    except RecursionError:
        raise OSError("directories are nested too deep; remove them by hand") from None


def _is_missing(name: str, here: int) -> bool:
    try:
        os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False


def _make_directory(name: str, here: int, mode: int) -> None:
    """Create a directory with exactly this mode, whatever the umask; by descriptor, not by name."""
    os.mkdir(name, mode, dir_fd=here)
    opened = os.open(name, _DIRECTORY, dir_fd=here)
    try:
        os.fchmod(opened, mode)
        os.fsync(opened)
    finally:
        os.close(opened)
    os.fsync(here)


def _take_place(parent: int, name: str) -> None:
    os.rename(DRAFT, name, src_dir_fd=parent, dst_dir_fd=parent)
    os.fsync(parent)


@contextlib.contextmanager
def _errors_named(operation: str, path: str) -> Iterator[None]:
    try:
        yield
    except HostError:
        raise
    except (OSError, ValueError, OverflowError) as error:
        raise HostError(operation, path, _reason(error)) from error


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number).lower() if number is not None else str(error)
