"""Sets ssh keys and password of ``core``, the only user whose settings a configuration may change.

Called by the update. Keys of all users of a configuration go to one file, which is replaced as a whole. Passwords are
never printed: a failed command is reported by name only. Source: Machine Config Operator ``updateSSHKeys``,
``SetPasswordHash``.
"""

from __future__ import annotations

from collections.abc import Sequence

from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.host import Host, HostError

CORE = "core"
SSH = "/home/core/.ssh"
KEYS = f"{SSH}/authorized_keys.d"
KEYS_FILE = f"{KEYS}/ignition"
NO_PASSWORD = "*"


def update_keys(host: Host, new: Sequence[Obj], old: Sequence[Obj]) -> None:
    """Write the keys. ``new`` and ``old``: ``passwd.users`` of two configurations. Raises UpdateError."""
    _clear_absent(host, new, old)
    uid = host.user_id(CORE)
    if uid is None:  # users are never created
        if any(user.get("sshAuthorizedKeys") or user.get("passwordHash") for user in new):
            host.note(f"passwd.users: there is no user {CORE} here, so that keys and password are left out; make one")
        return
    gid = host.group_id(CORE)
    if gid is None:
        raise UpdateError(f"failed to retrieve GroupID for group: {CORE}")
    keys = "".join(f"{key}\n" for user in new for key in user.get("sshAuthorizedKeys") or ())
    try:
        _own_folder(host)
        host.write(KEYS_FILE, keys.encode(), mode=0o600, owner=(uid, gid), parents=0o700)
    except HostError as error:
        raise UpdateError(str(error)) from error


def _own_folder(host: Host) -> None:
    """Recreate the folder if another user owns it."""
    if host.exists(SSH):
        found = host.stat(SSH)
        owner = host.user_name(found.uid) if found is not None else None
        if owner is None:
            unknown = found.uid if found is not None else "?"
            raise UpdateError(f"failed to look up the user of the .ssh path {SSH}:user: unknown userid {unknown}")
        if owner != CORE:
            host.remove_all(SSH)
    if host.exists(KEYS):
        return
    # One by one: the mode of a call applies to the last folder only.
    for folder in [KEYS] if host.exists(SSH) else [SSH, KEYS]:
        done = host.run(["runuser", "-u", CORE, "--", "mkdir", "-m", "0700", "-p", folder])
        if not done.ok:
            raise UpdateError(f"exit status {done.code}")


def set_passwords(host: Host, new: Sequence[Obj], old: Sequence[Obj]) -> None:
    """Set passwords whose hash differs; a user without a hash gets no password. Raises UpdateError."""
    _clear_absent(host, new, old)
    if host.user_id(CORE) is None:
        return
    for user in new:
        name, wanted = str(user.get("name", "")), str(user.get("passwordHash") or NO_PASSWORD)
        found = host.run(["getent", "shadow", name])
        if not found.ok:
            raise UpdateError(f"failed to check password hash for {name}: exit status {found.code}")
        fields = found.output.strip().split(":")
        if len(fields) > 1 and fields[1] == wanted:
            continue
        done = host.run(["usermod", "-p", wanted, name])
        if not done.ok:
            said = done.output.replace(wanted, "…") if wanted != NO_PASSWORD else done.output
            raise UpdateError(f"failed to reset password for {name}: {said}:exit status {done.code}")


def _clear_absent(host: Host, new: Sequence[Obj], old: Sequence[Obj]) -> None:
    """Remove passwords of users that the configuration no longer names; failures are ignored."""
    there = {user.get("name") for user in new}
    for user in old:
        if user.get("name") not in there:
            host.run(["usermod", "-p", "", str(user.get("name", ""))])
