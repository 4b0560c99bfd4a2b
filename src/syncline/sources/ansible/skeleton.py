"""The minimal tree in which a playbook is captured if none of the pool's OS is given: :func:`skeleton`; pure.

It has the layout of a CoreOS (``/home`` and ``/usr/local`` below ``/var``, ``/usr`` read-only) with the accounts and
settings that every such node has. ``/usr`` is this machine's: commands that tasks run are its commands.
"""

from __future__ import annotations

from dataclasses import dataclass

RELEASE = "9.6"
_OS = f"""NAME="Red Hat Enterprise Linux CoreOS"
ID="rhel"
ID_LIKE="fedora"
VERSION="{RELEASE}"
VERSION_ID="{RELEASE}"
VARIANT="CoreOS"
VARIANT_ID=coreos
PLATFORM_ID="platform:el9"
PRETTY_NAME="Red Hat Enterprise Linux CoreOS {RELEASE}"
"""
_PASSWD = """root:x:0:0:Super User:/root:/bin/bash
bin:x:1:1:bin:/bin:/sbin/nologin
daemon:x:2:2:daemon:/sbin:/sbin/nologin
adm:x:3:4:adm:/var/adm:/sbin/nologin
mail:x:8:12:mail:/var/spool/mail:/sbin/nologin
nobody:x:65534:65534:Kernel Overflow User:/:/sbin/nologin
dbus:x:81:81:System Message Bus:/:/usr/sbin/nologin
chrony:x:994:994:chrony system user:/var/lib/chrony:/sbin/nologin
sshd:x:74:74:Privilege-separated SSH:/usr/share/empty.sshd:/usr/sbin/nologin
core:x:1000:1000:CoreOS Admin:/home/core:/bin/bash
"""
_GROUP = """root:x:0:
bin:x:1:
daemon:x:2:
sys:x:3:
adm:x:4:core
tty:x:5:
disk:x:6:
mail:x:12:
ssh_keys:x:101:
systemd-journal:x:190:core
wheel:x:10:core
users:x:100:
sudo:x:16:core
nobody:x:65534:
dbus:x:81:
chrony:x:994:
sshd:x:74:
core:x:1000:
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A file, a folder (``text`` is None) or a link (``target``)."""

    path: str
    mode: int = 0o755
    text: str | None = None
    target: str = ""
    owner: int = 0


_FOLDERS = (
    *("etc", "var", "run", "sysroot", "boot", "mnt", "media", "sys", "usr"),
    *("var/lib", "var/log", "var/cache", "var/spool", "var/spool/cron", "var/opt", "var/srv", "var/home", "var/adm"),
    *("var/usrlocal", "var/usrlocal/bin", "var/usrlocal/sbin", "var/usrlocal/etc", "var/usrlocal/lib"),
    *("etc/sysconfig", "etc/sysctl.d", "etc/modules-load.d", "etc/modprobe.d", "etc/tmpfiles.d", "etc/sysusers.d"),
    *("etc/profile.d", "etc/cron.d", "etc/cron.daily", "etc/cron.hourly", "etc/cron.weekly", "etc/cron.monthly"),
    *(
        "etc/ssh",
        "etc/ssh/sshd_config.d",
        "etc/ssh/ssh_config.d",
        "etc/sudoers.d",
        "etc/security",
        "etc/security/limits.d",
    ),
    *("etc/systemd", "etc/systemd/system", "etc/systemd/system/multi-user.target.wants", "etc/systemd/journald.conf.d"),
    *("etc/selinux", "etc/pam.d", "etc/udev", "etc/udev/rules.d", "etc/NetworkManager", "etc/NetworkManager/conf.d"),
    *("etc/NetworkManager/dispatcher.d", "etc/NetworkManager/system-connections", "etc/containers", "etc/logrotate.d"),
    *("etc/yum.repos.d", "etc/pki", "etc/pki/ca-trust", "etc/pki/ca-trust/source", "etc/pki/ca-trust/source/anchors"),
    *("etc/audit", "etc/audit/rules.d", "etc/skel", "etc/default", "etc/rsyslog.d", "etc/chrony.d", "etc/systemd/user"),
)
_PRIVATE = {"etc/sudoers.d": 0o750, "etc/audit": 0o750, "etc/audit/rules.d": 0o750, "etc/ssh/sshd_config.d": 0o700}
_LINKS = {
    "bin": "usr/bin",
    "sbin": "usr/sbin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "home": "var/home",
    "opt": "var/opt",
    "srv": "var/srv",
    "root": "var/roothome",
    "var/run": "../run",
    "etc/localtime": "../usr/share/zoneinfo/UTC",
    "etc/mtab": "../proc/self/mounts",
    **{
        f"etc/systemd/system/multi-user.target.wants/{name}": f"/usr/lib/systemd/system/{name}"
        for name in ("NetworkManager.service", "auditd.service", "chronyd.service", "crio.service", "sshd.service")
    },
}
_FILES = {
    "etc/os-release": _OS,
    "etc/redhat-release": f"Red Hat Enterprise Linux CoreOS release {RELEASE}\n",
    "etc/system-release": f"Red Hat Enterprise Linux CoreOS release {RELEASE}\n",
    "etc/passwd": _PASSWD,
    "etc/group": _GROUP,
    "etc/hostname": "",
    "etc/hosts": "127.0.0.1 localhost localhost.localdomain\n::1 localhost localhost.localdomain\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "etc/resolv.conf": "",
    "etc/fstab": "",
    "etc/machine-id": "",
    "etc/shells": "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n/sbin/nologin\n",
    "etc/login.defs": "UID_MIN 1000\nUID_MAX 60000\nSYS_UID_MIN 201\nSYS_UID_MAX 999\nGID_MIN 1000\nGID_MAX 60000\n"
    "SYS_GID_MIN 201\nSYS_GID_MAX 999\nUMASK 022\nHOME_MODE 0700\nCREATE_HOME yes\nUSERGROUPS_ENAB yes\n"
    "ENCRYPT_METHOD SHA512\n",
    "etc/default/useradd": "GROUP=100\nHOME=/home\nINACTIVE=-1\nEXPIRE=\nSHELL=/bin/bash\nSKEL=/etc/skel\n",
    "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\nAuthorizedKeysFile .ssh/authorized_keys\n"
    "Subsystem sftp /usr/libexec/openssh/sftp-server\n",
    "etc/ssh/ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n",
    "etc/chrony.conf": "pool 2.rhel.pool.ntp.org iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\n"
    "keyfile /etc/chrony.keys\nlogdir /var/log/chrony\n",
    "etc/selinux/config": "SELINUX=enforcing\nSELINUXTYPE=targeted\n",
    "etc/ssh/moduli": "",
    "etc/sysctl.conf": "",
    "etc/profile": "",
    "etc/environment": "",
    "etc/systemd/journald.conf": "[Journal]\n",
    "etc/sudoers": "Defaults env_reset\nroot ALL=(ALL) ALL\n%wheel ALL=(ALL) ALL\n#includedir /etc/sudoers.d\n",
}
_SECRET = {
    "etc/shadow": "".join(f"{line.split(':')[0]}:*:18000:0:99999:7:::\n" for line in _PASSWD.splitlines()),
    "etc/gshadow": "".join(f"{line.split(':')[0]}:::{line.split(':')[3]}\n" for line in _GROUP.splitlines()),
}
_MODES = {"etc/sudoers": 0o440, "etc/ssh/sshd_config": 0o600}


def skeleton() -> tuple[Node, ...]:
    """Return folders before what is in them."""
    homes = (Node("var/roothome", 0o700), Node("var/home/core", 0o700, owner=1000))
    extra = (Node("tmp", 0o1777), Node("var/tmp", 0o1777))
    return (
        *(Node(path, _PRIVATE.get(path, 0o755)) for path in _FOLDERS),
        *extra,
        *homes,
        *(Node(path, _MODES.get(path, 0o644), text) for path, text in _FILES.items()),
        *(Node(path, 0, text) for path, text in _SECRET.items()),
        *(Node(path, 0o777, target=target) for path, target in _LINKS.items()),
    )
