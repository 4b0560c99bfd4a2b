"""What a captured run means for a pool: :func:`judge`; pure.

Paths, units, accounts, packages and kernel arguments that differ become :class:`Captured`. What a MachineConfig cannot
carry, or what only the running system had, is a :class:`Refusal` with the task, its file and line, and the way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from syncline.sources.ansible.accounts import GroupAccount, User, changed_accounts, read_accounts
from syncline.sources.ansible.observing import Entry, Record, Run
from syncline.sources.ansible.reporting import State, TaskResult

UNITS = "/etc/systemd/system"
_WRITABLE = ("/etc/", "/var/", "/usr/local/", "/opt/", "/srv/")
_MOVED = {"/var/opt/": "/opt/", "/var/srv/": "/srv/"}
_ACCOUNT_FILES = re.compile(r"/etc/((passwd|group|shadow|gshadow|subuid|subgid)-?|\.pwd\.lock)")
_NOISE = re.compile(
    r"(/etc/(ld\.so\.cache|\.updated|mtab|resolv\.conf)"
    r"|/var/(cache|log|lib/(systemd|dnf|rpm|apt|dpkg)|spool/mail|mail|tmp)(/.*)?"
    r"|.*\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~"
    r"|/var/roothome/\.(ansible|cache|lesshst|bash_history)(/.*)?|/dev/.*|/mnt|/root/\.ansible(/.*)?)"
)
"""Caches and logs that programs leave by the way, and copies that modules keep (``backup: true``)."""
_UNIT = re.compile(rf"{UNITS}/([^/]+\.(?:service|socket|timer|target|mount|path|slice|swap|automount|device))")
_DROPIN = re.compile(rf"{UNITS}/([^/]+)\.d/([^/]+\.conf)")
_ENABLED = re.compile(rf"{UNITS}/([^/]+)\.(?:wants|requires)/([^/]+)")
_NETWORK = {"uri", "get_url", "git", "pip", "subversion", "rpm_key", "yum_repository", "apt_key", "wait_for"}
MAX_FILES_BYTES = 1024 * 1024
"""Of all captured contents: an object of the API holds 1.5 MiB, and contents are encoded."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that cannot be captured."""

    what: str
    fix: str
    task: TaskResult | None = None
    subject: str = ""
    """The path, package or argument, where the task is still to be found."""

    def __str__(self) -> str:
        return f"{f'{self.task.where}: ' if self.task else ''}{self.what}; {self.fix}"


@dataclass(frozen=True, slots=True)
class File:
    """A regular file; owners by name where the tree knows one."""

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o644
    user: str | int = 0
    group: str | int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    mode: int = 0o755
    user: str | int = 0
    group: str | int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit; None: as the image has it."""

    name: str
    contents: str | None = None
    enabled: bool | None = None
    mask: bool | None = None
    dropins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Captured:
    """What the playbook leaves on a machine, beyond what the machine had."""

    files: tuple[File, ...] = ()
    folders: tuple[Folder, ...] = ()
    """Those that are not merely above a file, with usual mode and owner."""
    links: tuple[tuple[str, str], ...] = ()
    """Path and target."""
    units: tuple[Unit, ...] = ()
    users: tuple[User, ...] = ()
    groups: tuple[GroupAccount, ...] = ()
    packages: tuple[str, ...] = ()
    kernel_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    captured: Captured
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()
    """What the result leaves to the roll-out, a sentence each."""


def judge(first: Run, second: Run | None = None) -> Judgement:
    """Return what a run means. ``second``: the same again, for what depends on time or chance."""
    refusals = list(_of_report(first))
    if refusals:
        return Judgement(Captured(), tuple(refusals))
    if second is not None:
        refusals += _differences(first, second)
    judged = _Judging(first)
    judged.take_entries()
    judged.take_records()
    return Judgement(judged.captured(), (*refusals, *judged.refusals), tuple(dict.fromkeys(judged.notes)))


def _of_report(run: Run) -> Iterator[Refusal]:
    report = run.report
    if report.ended:
        count = len(report.results)
        yield Refusal(f"{report.why} ({count} {'task was' if count == 1 else 'tasks were'} done)", _SMALLER)
        return
    if not report.succeeded:
        failed = report.failed[-1] if report.failed else None
        yield Refusal(report.why, _way_out(failed, report.running.module if report.running else ""))
        return
    if report.unmatched and not report.results:
        names = ", ".join(report.unmatched)
        yield Refusal(
            f'the hosts of "{names}" match no host', "give --inventory and --host, or use the pool's name as group"
        )
    hosts = sorted({one.host for one in report.results})
    if len(hosts) > 1:
        yield Refusal(f"tasks ran for several hosts ({', '.join(hosts[:5])})", "name the one to capture with --host")
    for one in report.results:
        if one.delegated and one.state is State.CHANGED:
            fix = "leave the task out with --skip-tags, or run the play as AnsibleConfig"
            yield Refusal(f"it changes another host ({one.delegated})", fix, one)


_SMALLER = "capture it in parts (a playbook for each), or run `syncline ansible capture` and commit the result"


def _way_out(failed: TaskResult | None, running: str) -> str:
    module = (failed.module if failed else running).rpartition(".")[2]
    if module == "reboot":
        return "leave it out with --skip-tags: the pool reboots its nodes in its order"
    if module in _NETWORK:
        return "a capture has no network: ship the file in the repository, or give --network"
    message = failed.message if failed else ""
    if "Read-only file system" in message:
        return "/usr belongs to the image: write below /etc, /var, /usr/local or /opt, or build an image"
    if "cannot be captured" in message or "captured cannot use it" in message:
        return "leave the task out with --skip-tags, or run the play as AnsibleConfig"
    return "give --tree with the pool's OS if the task needs its programs, or leave it out with --skip-tags"


def _differences(first: Run, second: Run) -> Iterator[Refusal]:
    """What the second run left otherwise, each with the task that touched it."""
    one, other = ({each.path: each for each in run.entries if not _is_noise(each)} for run in (first, second))
    for path in sorted({*one, *other}):
        if one.get(path) != other.get(path):
            what = f"{path} differs between two runs of the playbook"
            fix = "write nothing that depends on time, chance or the run (timestamps, random, facts of memory)"
            yield Refusal(what, fix, first.touched.get(path) or second.touched.get(path))
    records = [[(each.kind, each.fields) for each in run.records] for run in (first, second)]
    if records[0] != records[1]:
        pairs = [(a, b) for a, b in zip(first.records, records[1]) if (a.kind, a.fields) != b]
        task = pairs[0][0].task if pairs else (first.records or second.records)[-1].task
        yield Refusal(
            "it acts otherwise in two runs of the playbook", "let it depend on files and variables alone", task
        )


def _is_noise(entry: Entry) -> bool:
    """``shadow`` holds the day of the last change, which two runs share but at midnight; accounts are compared."""
    return bool(_NOISE.fullmatch(entry.path)) or entry.path in (
        "/etc/passwd-",
        "/etc/group-",
        "/etc/shadow-",
        "/etc/gshadow-",
    )


class _Paths:
    """Sorts the paths that differ: each ends in one place."""

    def __init__(self, run: Run) -> None:
        self._run = run
        after = {each.path: (each.content or b"").decode("utf-8", "replace") for each in run.entries}
        now = {path: after.get(path, text) for path, text in run.kept.items()}
        self._before, self._after = read_accounts(run.kept), read_accounts(now)
        self._names = {each.uid: each.name for each in self._after.users}
        self._group_names = {each.gid: each.name for each in self._after.groups}
        self._files: list[File] = []
        self._folders: list[Folder] = []
        self._links: list[tuple[str, str]] = []
        self._units: dict[str, Unit] = {}
        self._packages: list[str] = []
        self._arguments: list[str] = []
        self._keys: dict[str, tuple[str, ...]] = {}
        self.refusals: list[Refusal] = []
        self.notes: list[str] = []

    # -- paths ---------------------------------------------------------------------------------------------------------

    def take_entries(self) -> None:
        for entry in self._run.entries:
            if not _NOISE.fullmatch(entry.path) and not _ACCOUNT_FILES.fullmatch(entry.path):
                self._entry(_moved(entry))
        if sum(len(each.content) for each in self._files) > MAX_FILES_BYTES:
            largest = max(self._files, key=lambda each: len(each.content))
            what = f"its files have more than {MAX_FILES_BYTES} bytes together, {largest.path} the most"
            self._refuse(what, "put large files into an image", largest.path)

    def _entry(self, entry: Entry) -> None:
        path, form = entry.path, entry.form
        home = self._home_of(path)
        if home is not None:
            self._in_home(entry, home)
        elif enabled := _ENABLED.fullmatch(path):
            self._unit(enabled[2], enabled=form.kind == "link")
        elif form.kind == "gone":
            if not self._was_unit_link(entry):
                self._refuse(
                    f"it removes {path}", "write an empty file, mask the unit, or add a tmpfiles.d line `r`", path
                )
        elif not path.startswith(_WRITABLE):
            self._outside(entry)
        elif form.kind == "other":
            self._refuse(f"{path} is a device, pipe or socket", "let a unit or tmpfiles.d make it", path)
        elif entry.xattrs:
            self._refuse(f"{path} has extended attributes ({', '.join(entry.xattrs)})", "set them by a unit", path)
        elif form.kind != "link" and form.mode & 0o7000 and not (form.kind == "dir" and form.mode & 0o7000 == 0o1000):
            what = f"{path} has the special mode bits {form.mode:04o}"
            self._refuse(what, "Ignition writes none: put the program into an image", path)
        elif form.kind == "dir":
            self._folder(entry)
        elif form.kind == "link":
            self._link(entry)
        else:
            self._file(entry)

    def _outside(self, entry: Entry) -> None:
        places = ", ".join(each.rstrip("/") for each in _WRITABLE)
        self._refuse(f"it writes {entry.path}, which is the image's or a person's", f"write below {places}", entry.path)

    def _was_unit_link(self, entry: Entry) -> bool:
        """An alias or mask that was taken away."""
        unit = _UNIT.fullmatch(entry.path)
        if unit and entry.was.kind == "link":
            named = entry.target.rpartition("/")[2]
            if entry.target in ("", "/dev/null"):
                self._unit(unit[1], mask=False)
            elif named != unit[1]:
                self._unit(named, enabled=False)
            return True
        return entry.path.startswith(f"{UNITS}/") and entry.was.kind == "dir"

    def _folder(self, entry: Entry) -> None:
        form = entry.form
        plain = form.mode == 0o755 and not form.user and not form.group
        if entry.path.startswith(f"{UNITS}/") and plain:
            return
        if plain and any(
            each.path.startswith(f"{entry.path}/") and each.form.kind == "file" for each in self._run.entries
        ):
            return
        self._folders.append(Folder(entry.path, form.mode, self._user(form.user), self._group(form.group)))

    def _link(self, entry: Entry) -> None:
        unit = _UNIT.fullmatch(entry.path)
        if unit and entry.target == "/dev/null":
            self._unit(unit[1], mask=True)
        elif unit:
            self._unit(entry.target.rpartition("/")[2], enabled=True)
        else:
            self._links.append((entry.path, entry.target))

    def _file(self, entry: Entry) -> None:
        form = entry.form
        if entry.content is None:
            self._refuse(f"{entry.path} has {entry.size} bytes", "put large files into an image", entry.path)
            return
        unit, dropin = _UNIT.fullmatch(entry.path), _DROPIN.fullmatch(entry.path)
        if not unit and not dropin:
            owners = self._user(form.user), self._group(form.group)
            self._files.append(File(entry.path, entry.content, form.mode, *owners))
            return
        try:
            text = entry.content.decode()
        except UnicodeDecodeError:
            self._refuse(f"{entry.path} is not text", "units are UTF-8", entry.path)
            return
        if (form.mode & 0o777, form.user, form.group) not in (
            (0o644, 0, 0),
            (0o600, 0, 0),
            (0o755, 0, 0),
            (0o640, 0, 0),
        ):
            self._refuse(
                f"{entry.path} is owned by another user or writable", "units are root's, mode 0644", entry.path
            )
        elif unit:
            self._unit(unit[1], contents=text)
        elif dropin:
            known = self._units.get(dropin[1], Unit(dropin[1]))
            self._units[dropin[1]] = replace(known, dropins=(*known.dropins, (dropin[2], text)))

    def _unit(self, name: str, **change: object) -> None:
        self._units[name] = replace(self._units.get(name, Unit(name)), **change)  # type: ignore[arg-type]

    def _user(self, uid: int) -> str | int:
        return self._names.get(uid, uid) if uid else 0

    def _group(self, gid: int) -> str | int:
        return self._group_names.get(gid, gid) if gid else 0

    # -- accounts ------------------------------------------------------------------------------------------------------

    def _home_of(self, path: str) -> User | None:
        path = path.replace("/var/home/", "/home/", 1).replace("/var/roothome", "/root", 1)
        for user in self._after.users:
            home = user.home.rstrip("/")
            person = user.uid >= 1000 or user.name == "root" or home.startswith("/home/")
            own = person and home not in ("", "/")
            if own and (path == home or path.startswith(f"{home}/")):
                return user
        return None

    def _in_home(self, entry: Entry, user: User) -> None:
        path = entry.path.replace("/var/home/", "/home/", 1).replace("/var/roothome", "/root", 1)
        rest = path.removeprefix(user.home.rstrip("/")).lstrip("/")
        if rest == ".ssh/authorized_keys" and user.name != "root" and entry.content is not None:
            lines = (entry.content or b"").decode("utf-8", "replace").splitlines()
            self._keys[user.name] = tuple(each.strip() for each in lines if each.strip() and not each.startswith("#"))
        elif rest in ("", ".ssh") or (user.name not in self._before.names and rest in _SKELETON):
            return
        elif user.name == "root":
            self._files_of_root(entry, path)
        else:
            what = f"it writes {path}, in the home of {user.name}"
            self._refuse(what, "a MachineConfig carries users and their SSH keys, not their homes", entry.path)

    def _files_of_root(self, entry: Entry, path: str) -> None:
        if (
            entry.form.kind == "file"
            and entry.content is not None
            and not entry.xattrs
            and not entry.form.mode & 0o7000
        ):
            self._files.append(File(path, entry.content, entry.form.mode))
        elif entry.form.kind != "dir":
            self._refuse(f"it changes {path} to something else than a file", "write a file there", entry.path)

    def _refuse(self, what: str, fix: str, path: str) -> None:
        moved = next((before for before, after in _MOVED.items() if path.startswith(after)), "")
        paths = (path, path.replace(_MOVED.get(moved, ""), moved, 1) if moved else path)
        task = next((self._run.touched[each] for each in paths if each in self._run.touched), None)
        self.refusals.append(Refusal(what, fix, task))


class _Judging(_Paths):
    """The same with what tasks did to the running system."""

    def take_records(self) -> None:
        for record in self._run.records:
            _TAKE.get(record.kind, _Judging._take_unknown)(self, record)
        for record in self._run.records:
            if record.kind == "live":
                self._live(record)
        for record in self._run.records:
            if record.kind in ("parameter", "module"):
                self._kernel_state(record)

    def _take_unknown(self, record: Record) -> None:
        what = f"it runs `{record.get('command')}`, which acts on a running system"
        fix = "leave it out with --skip-tags, or run the play as AnsibleConfig"
        self.refusals.append(Refusal(what, fix, record.task))

    def _take_enable(self, record: Record) -> None:
        self._unit(record.get("unit"), enabled=True)

    def _take_disable(self, record: Record) -> None:
        self._unit(record.get("unit"), enabled=False)

    def _take_install(self, record: Record) -> None:
        self._packages.append(record.get("package"))

    def _take_remove(self, record: Record) -> None:
        name = record.get("package")
        if name in self._packages:
            self._packages.remove(name)
        else:
            what = f"it removes the package {name} of the image"
            self.refusals.append(Refusal(what, "build an image without it", record.task))

    def _take_kernel(self, record: Record) -> None:
        removed = record.get("remove")
        if removed:
            what = f"it removes the kernel argument {removed}"
            self.refusals.append(
                Refusal(what, "a MachineConfig adds arguments alone: remove it where it is set", record.task)
            )
        elif record.get("add") not in self._arguments:
            self._arguments.append(record.get("add"))

    def _take_nothing(self, record: Record) -> None:
        """Judged when everything else is known, or visible in the tree."""

    def _live(self, record: Record) -> None:
        """A start, stop or restart is right if the boot that brings the configuration does the same."""
        name, verb = record.get("unit"), record.get("verb")
        unit = self._units.get(name)
        boots = not (unit and (unit.mask or unit.enabled is False))
        if verb in ("restart", "reload", "start") and boots and self._something_to_boot(name, verb):
            short = name.removesuffix(".service")
            done = {"start": "is started", "restart": "is restarted", "reload": "is reloaded"}[verb]
            spare = "to spare the reboot, name it in a node disruption policy"
            self.notes.append(f"{short} {done} by the reboot that brings this config; {spare}")
        elif verb == "stop" and unit and (unit.mask or unit.enabled is False):
            return
        else:
            what = f"it {_VERBS.get(verb, verb + 's')} {name} and changes nothing that a boot would bring"
            fix = "enable, disable or mask the unit, or leave the task out with --skip-tags"
            self.refusals.append(Refusal(what, fix, record.task))

    def _something_to_boot(self, name: str, verb: str) -> bool:
        unit = self._units.get(name)
        if verb == "start":
            return bool(unit and (unit.enabled or unit.contents)) or self._starts_anyway(name)
        return bool(self._files or self._units or self._links)

    def _starts_anyway(self, name: str) -> bool:
        """The module reports a start only of what would not run, unless a task before disabled it."""
        return False

    def _kernel_state(self, record: Record) -> None:
        """A parameter or module is right if a file sets it at boot, too."""
        name = record.get("key") or record.get("name")
        if record.kind == "parameter":
            lines = self._lines("/etc/sysctl.conf", "/etc/sysctl.d/")
            found = any(_parameter(line) == (name, " ".join(record.get("value").split())) for line in lines)
            fix = "write it to a file of /etc/sysctl.d, too"
        elif record.has("loaded"):
            found = name in {line.strip() for line in self._lines("/etc/modules-load.d/")}
            fix = "name it in a file of /etc/modules-load.d, too"
        else:
            lines = self._lines("/etc/modprobe.d/")
            found, fix = any(name in line.split() for line in lines), "blacklist it in a file of /etc/modprobe.d, too"
        if not found:
            what = f"it changes {name} in the running kernel alone"
            self.refusals.append(Refusal(what, fix, record.task))

    def _lines(self, *places: str) -> list[str]:
        found = [each.content for each in self._files if each.path.startswith(places)]
        return [line for content in found for line in content.decode("utf-8", "replace").splitlines()]

    # -- the result ----------------------------------------------------------------------------------------------------

    def captured(self) -> Captured:
        users, groups, wrong = changed_accounts(self._before, self._after, self._keys)
        for what in wrong:
            path = next(
                (each for each in ("/etc/shadow", "/etc/passwd", "/etc/group") if each in self._run.touched), ""
            )
            self._refuse(what, "a MachineConfig adds users, and changes keys and password of core", path)
        return Captured(
            tuple(sorted(self._files, key=lambda each: each.path)),
            tuple(sorted(self._folders, key=lambda each: each.path)),
            tuple(sorted(self._links)),
            tuple(sorted(self._units.values(), key=lambda each: each.name)),
            users,
            groups,
            tuple(dict.fromkeys(self._packages)),
            tuple(self._arguments),
        )


_SKELETON = (".bashrc", ".bash_profile", ".bash_logout", ".profile")
_VERBS = {"start": "starts", "stop": "stops", "restart": "restarts", "reload": "reloads"}
_TAKE = {
    "enable": _Judging._take_enable,
    "disable": _Judging._take_disable,
    "install": _Judging._take_install,
    "remove": _Judging._take_remove,
    "kernel": _Judging._take_kernel,
    **dict.fromkeys(("live", "parameter", "module", "enabled"), _Judging._take_nothing),
}


def _moved(entry: Entry) -> Entry:
    """Folders of the root that are links below ``/var`` on such systems, as playbooks name them."""
    for before, after in _MOVED.items():
        if entry.path.startswith(before):
            return replace(entry, path=after + entry.path.removeprefix(before))
    return entry


def _parameter(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key.strip().lstrip("-").replace("/", "."), " ".join(value.split())
