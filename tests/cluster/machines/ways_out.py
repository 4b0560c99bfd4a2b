"""Ways out of a sandbox, as programs: what is tried, and the lines it prints if the way is shut.

``@NAME@`` stands for what the test prepares outside: files, sockets, processes. Python programs have ``ask`` (a system
call by name: prints its name and how it was answered), ``reach`` (a connection) and ``look`` (a file).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PRELUDE = """
import ctypes, errno, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
COLUMN = 0 if platform.machine() == "x86_64" else 1
NUMBERS = @NUMBERS@
def ask(name, *arguments):
    number = NUMBERS[name][COLUMN]
    if number is None:
        print(name, "EPERM")
        return
    found = libc.syscall(number, *arguments)
    print(name, "worked" if found >= 0 else errno.errorcode[ctypes.get_errno()])
def attempt(name, function, *arguments):
    try:
        print(name, "worked", function(*arguments))
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def look(path):
    with open(path, "rb") as file:
        return file.read(100)
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
def reach(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"x")
"""


@dataclass(frozen=True)
class Way:
    """``python`` or ``shell`` is what is run, ``shut`` what it prints then; ``volumes`` with their ``mounts``, and
    containers that run ``before`` it."""

    name: str
    shut: str
    python: str = ""
    shell: str = ""
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    before: str = ""
    code: int = 0
    env: dict[str, str] = field(default_factory=dict)


def _asks(*calls: str) -> str:
    return "\n".join(f'ask("{call}", 0, 0, 0, 0, 0, 0)' for call in calls)


def _answers(answer: str, *calls: str) -> str:
    return "\n".join(f"{call} {answer}" for call in calls)


MOUNTING = ("mount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr")
MACHINE = (
    *("reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff"),
    *("settimeofday", "clock_settime", "sethostname", "setdomainname", "acct", "quotactl", "iopl", "ioperm", "syslog"),
)
SPYING = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "bpf", "perf_event_open"),
    *("userfaultfd", "fanotify_init", "process_madvise", "lookup_dcookie"),
)
KEYS = ("add_key", "request_key", "keyctl")
ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "memfd_create", "memfd_secret")
EMPTY = ({"name": "e", "emptyDir": {}},)
WORK = ({"name": "e", "mountPath": "/work"},)

WAYS = (
    # -- files of this machine
    Way(
        "read the machine's passwords and keys, the administrator's kubeconfig, the cluster's keys and data",
        python='for path in @FILES@: attempt("file", look, path)',
        shut="@FILES_SHUT@",
    ),
    Way(
        "list people's homes",
        shell="ls /root /home /mnt /media /srv 2>/dev/null; ls -A /tmp; ls -A /var/tmp; echo none",
        shut="none",
    ),
    Way("find the files of other pods", shell="ls -d /tmp/syncline-* @SCRATCH@ 2>/dev/null || echo none", shut="none"),
    Way(
        "write into the system",
        shell="for at in /usr /usr/bin /bin /etc/ssl /opt/syncline/bin /opt/syncline/source /lib /proc; do "
        '(: > $at/x) 2>/dev/null && echo "$at"; done; echo none',
        shut="none",
    ),
    Way("look at the devices of the kernel", shell="ls -A /sys 2>/dev/null; echo none", shut="none"),
    Way(
        "write into our own programs",
        shell="for f in /opt/syncline/bin/oc /opt/syncline/source/syncline/__init__.py; do (: >> $f) 2>/dev/null "
        '&& echo "$f"; done; echo none',
        shut="none",
    ),
    # -- other processes
    Way(
        "read other processes' variables and memory",
        python="""
for process in ("1", "2"):
    for name in ("environ", "mem", "maps", "auxv", "stack", "exe", "root/etc/shadow", "cwd/etc/shadow", "fd"):
        path = f"/proc/{process}/{name}"
        try:
            os.listdir(path) if name == "fd" else look(path)
            print("read", path)
        except OSError:
            pass
print("none")
""",
        shut="none",
    ),
    Way("see another pod's secret", shell="cat /proc/[0-9]*/environ 2>/dev/null | grep -c @MARK@; true", shut="0"),
    Way(
        "take the program of a process that is ours",
        python="""
for process in os.listdir("/proc"):
    if process.isdigit() and int(process) != os.getpid():
        attempt("exe", os.open, f"/proc/{process}/exe", os.O_PATH)
""",
        shut="exe EACCES\nexe EACCES",
    ),
    Way("signal a process of this machine", python='attempt("kill", os.kill, @PID@, 0)', shut="kill ESRCH"),
    Way(
        "end everything one can see",
        python="""
attempt("all", os.kill, -1, 0)
try:
    os.kill(1, 9)
except OSError:
    pass
print(os.path.exists("/proc/1"))
""",
        shut="all worked None\nTrue",
    ),
    Way("trace and spy", python=_asks(*SPYING), shut=_answers("EPERM", *SPYING)),
    Way(
        "enter the namespaces of process 1",
        python="""
for name in ("mnt", "user", "net", "pid"):
    attempt(name, os.open, f"/proc/1/ns/{name}", os.O_RDONLY)
ask("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)
""",
        shut="mnt EACCES\nuser EACCES\nnet EACCES\npid EACCES\nsetns EPERM",
    ),
    Way("use descriptors that were left open", shell="exec ls /proc/self/fd | wc -l", shut="4"),
    # -- the network
    Way(
        "reach other ports of this machine",
        python="""
attempt("port", reach, socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", @PORT@))
attempt("port6", reach, socket.AF_INET6, socket.SOCK_STREAM, ("::1", @PORT@))
for address in @ADDRESSES@:
    attempt("address", reach, socket.AF_INET, socket.SOCK_STREAM, (address, @PORT@))
""",
        shut="port ECONNREFUSED\nport6 ECONNREFUSED@ADDRESSES_SHUT@",
    ),
    Way(
        "reach the metadata of a cloud, name servers, the internet",
        python="""
for address in (("169.254.169.254", 80), ("169.254.170.2", 80), ("1.1.1.1", 443), ("10.0.0.1", 80)):
    attempt("tcp", reach, socket.AF_INET, socket.SOCK_STREAM, address)
attempt("udp", reach, socket.AF_INET, socket.SOCK_DGRAM, ("1.1.1.1", 53))
attempt("six", reach, socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700:4700::1111", 443))
""",
        shut=_answers("ENETUNREACH", "tcp", "tcp", "tcp", "tcp", "udp", "six"),
    ),
    Way(
        "reach sockets without a name in the file system",
        python='attempt("abstract", reach, socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + "@ABSTRACT@")',
        shut="abstract ECONNREFUSED",
    ),
    Way(
        "reach sockets of services of this machine",
        python='for path in @SOCKETS@: attempt("socket", reach, socket.AF_UNIX, socket.SOCK_STREAM, path)',
        shut="@SOCKETS_SHUT@",
    ),
    Way(
        "reach the host of a virtual machine, and rare families of sockets",
        python="""
for family in (40, 38, 17, 15, 29, 31, 44):
    attempt("family", socket.socket, family, socket.SOCK_DGRAM)
attempt("raw", socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
""",
        shut="\n".join(["family EAFNOSUPPORT"] * 7 + ["raw EPERM"]),
    ),
    Way(
        "make a network of its own",
        shell="ip link add x type dummy 2>/dev/null && echo made; "
        "ip addr add 10.1.1.1/8 dev lo 2>/dev/null && echo added; echo none",
        shut="none",
    ),
    # -- more rights
    Way(
        "have or gain rights",
        shell="grep -hE '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr '\\t' ' '",
        shut="\n".join(
            [f"Cap{name}: 0000000000000000" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")]
            + ["NoNewPrivs: 1", "Seccomp: 2"]
        ),
    ),
    Way(
        "use programs of other users",
        shell="cp /bin/sh /work/s && chmod 6755 /work/s && /work/s -p -c 'grep -c CapEff:.*[1-9a-f] /proc/self/status';"
        "for p in su mount passwd sudo; do $p --help >/dev/null 2>&1; done; "
        "grep -c 'Uid:.*[1-9]' /proc/self/status; true",
        shut="0\n0",
        volumes=EMPTY,
        mounts=WORK,
    ),
    Way(
        "become another user",
        python="""
for user in (1, 1000, 65534):
    attempt("user", os.setuid, user)
attempt("groups", os.setgroups, [1])
""",
        shut="user EINVAL\nuser EINVAL\nuser EINVAL\ngroups EPERM",
    ),
    Way(
        "make namespaces",
        python="""
for flags in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x2000000, 0x80):
    ask("unshare", flags)
    if flags != 0x80:
        ask("clone", flags | 17, 0, 0, 0, 0)
""",
        shut="\n".join(["unshare EPERM\nclone EPERM"] * 5 + ["unshare EPERM"]),
    ),
    Way("mount", python=_asks(*MOUNTING), shut=_answers("EPERM", *MOUNTING)),
    Way(
        "change the root directory",
        python='attempt("chroot", os.chroot, "/tmp")\nask("pivot_root", b"/tmp", b"/tmp")',
        shut="chroot EPERM\npivot_root EPERM",
    ),
    Way(
        "open files behind the tree",
        python='ask("open_by_handle_at", -100, 0, 0)\nask("name_to_handle_at", -100, 0, 0, 0, 0)',
        shut="open_by_handle_at EPERM\nname_to_handle_at EPERM",
    ),
    Way("change the machine", python=_asks(*MACHINE), shut=_answers("EPERM", *MACHINE)),
    Way("use keys that the kernel keeps", python=_asks(*KEYS), shut=_answers("EPERM", *KEYS)),
    Way("pass by the filter", python=_asks(*ABSENT), shut=_answers("ENOSYS", *ABSENT)),
    Way(
        "call by numbers that nobody listed",
        python="""
for number in (1000, 0x40000000 + 39 if COLUMN == 0 else 1000):
    libc.syscall(number)
    print(errno.errorcode[ctypes.get_errno()])
""",
        shut="ENOSYS\nENOSYS",
    ),
    Way(
        "make devices",
        python="""
import stat
for kind in (stat.S_IFCHR, stat.S_IFBLK):
    attempt("node", os.mknod, "/work/node", kind | 0o666, os.makedev(1, 1))
print(sorted(name for name in os.listdir("/dev") if not os.path.islink("/dev/" + name)))
""",
        shut="node EPERM\nnode EPERM\n['full', 'null', 'pts', 'random', 'shm', 'termination-log', 'urandom', 'zero']",
        volumes=EMPTY,
        mounts=WORK,
    ),
    Way(
        "change the kernel's settings",
        python="""
for name in ("sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/vm/panic_on_oom", "sys/net/ipv4/ip_forward",
             "sys/kernel/hostname", "sys/user/max_user_namespaces", "sysrq-trigger"):
    try:
        write("/proc/" + name, "x")
        print("wrote", name)
    except OSError:
        pass
print("none")
""",
        shut="none",
    ),
    Way(
        "read what the kernel knows",
        python="""
for name in ("kcore", "keys", "kallsyms", "timer_list", "kmsg"):
    try:
        found = look("/proc/" + name)
        print("read", name) if found else None
    except OSError:
        pass
print("none")
""",
        shut="none",
    ),
    Way(
        "type into a terminal",
        python="""
import fcntl, os
ours, theirs = os.openpty()
attempt("type", fcntl.ioctl, theirs, 0x5412, b"x")
attempt("console", fcntl.ioctl, theirs, 0x541C, b"x")
attempt("controlling", os.open, "/dev/tty", os.O_RDWR)
""",
        shut="type EPERM\nconsole EPERM\ncontrolling ENOENT",
    ),
    Way(
        "raise one's limits and importance",
        python="""
import resource
for name in ("RLIMIT_NPROC", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_CPU", "RLIMIT_NOFILE"):
    soft, hard = resource.getrlimit(getattr(resource, name))
    print(hard != resource.RLIM_INFINITY, end=" ")
    try:
        resource.setrlimit(getattr(resource, name), (soft, hard + 1))
        print("raised")
    except (ValueError, OSError):
        print("kept")
attempt("victim", write, "/proc/self/oom_score_adj", "-1000")
attempt("first", os.setpriority, os.PRIO_PROCESS, 0, -20)
attempt("real time", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
""",
        shut="\n".join(["True kept"] * 5 + ["victim EACCES", "first EACCES", "real time EPERM"]),
    ),
    # -- memory and files without end
    Way(
        "fill the memory with files",
        shell="head -c 200000000 /dev/zero > /tmp/a; head -c 200000000 /dev/zero > /dev/shm/a; "
        "[ $(cat /tmp/a /dev/shm/a | wc -c) -le 268435456 ] && echo bounded",
        shut="head: error writing 'standard output': No space left on device\nbounded",
    ),
    Way(
        "fill the memory with files that are empty",
        python="""
try:
    for number in range(200_000):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT))
except OSError as error:
    print(errno.errorcode[error.errno])
""",
        shut="ENOSPC",
    ),
    Way(
        "write a file without end",
        python="""
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("/work/large", "wb") as file:
    attempt("large", file.truncate, 1 << 40)
""",
        shut="large EFBIG",
        volumes=EMPTY,
        mounts=WORK,
    ),
    # -- volumes
    Way(
        "mount a host path",
        shell="ls /host",
        volumes=({"name": "h", "hostPath": {"path": "/"}},),
        mounts=({"name": "h", "mountPath": "/host"},),
        shut='[syncline] volume "h": hostPath volumes are not given to local processes; use emptyDir, configMap, '
        "secret, downwardAPI or projected",
        code=128,
    ),
    Way(
        "follow a link out of a volume by subPath",
        shell="cat /seen/secret",
        before="ln -s @OUTSIDE@ /work/link",
        volumes=EMPTY,
        mounts=({"name": "e", "mountPath": "/seen", "subPath": "link"},),
        shut="[syncline] no sandbox: subPath link leads out of the volume",
        code=125,
    ),
    Way(
        "follow a link upwards out of a volume by subPath",
        shell="cat /seen/secret",
        before="mkdir /work/a; ln -s ../../../../../../../..@OUTSIDE@ /work/a/link",
        volumes=EMPTY,
        mounts=({"name": "e", "mountPath": "/seen", "subPath": "a/link"},),
        shut="[syncline] no sandbox: subPath a/link leads out of the volume",
        code=125,
    ),
    Way(
        "mount onto a link that leads out",
        shell="echo x > /work/link/made; echo ran",
        before="ln -s @OUTSIDE@ /work/link",
        volumes=(*EMPTY, {"name": "f", "emptyDir": {}}),
        mounts=(*WORK, {"name": "f", "mountPath": "/work/link/made"}),
        shut="[syncline] no sandbox: /work/link/made leads nowhere (File exists)",
        code=125,
    ),
    Way(
        "reach outside by a link in a volume",
        shell="ln -s @OUTSIDE@ /work/out; cat /work/out/secret 2>/dev/null || echo none; "
        "ln /etc/passwd /work/hard 2>/dev/null && echo linked; echo over",
        volumes=EMPTY,
        mounts=WORK,
        shut="none\nover",
    ),
    Way(
        "change a secret, or read what its mode forbids others",
        shell="(: > /secret/password) 2>/dev/null && echo wrote; rm -f /secret/password 2>/dev/null; "
        "chmod 777 /secret/password 2>/dev/null; stat -Lc '%a %u' /secret/password; cat /secret/password",
        volumes=({"name": "s", "secret": {"secretName": "ours", "defaultMode": 0o400}},),
        mounts=({"name": "s", "mountPath": "/secret"},),
        shut="400 0\nhidden",
    ),
    # -- the API
    Way(
        "read another pod's log and secrets through the API",
        shell="oc logs neighbour 2>&1 | grep -o forbidden; oc get secrets 2>&1 | grep -o forbidden; "
        "oc get pods -n kube-system 2>&1 | grep -o forbidden",
        shut="forbidden\nforbidden\nforbidden",
    ),
)
