"""Users and groups of a tree, and what differs: :func:`read_accounts`, :func:`changed_accounts`; pure.

Formats: passwd(5), group(5), shadow(5). Malformed lines are left out, as the C library does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

CORE = "core"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: int
    gid: int
    gecos: str
    home: str
    shell: str
    password: str = field(default="", repr=False)
    """The hash; locked accounts have ``*`` or ``!``."""
    groups: tuple[str, ...] = ()
    primary: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupAccount:
    name: str
    gid: int
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accounts:
    users: tuple[User, ...] = ()
    groups: tuple[GroupAccount, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.users)


def read_accounts(files: Mapping[str, str]) -> Accounts:
    """Read ``/etc/passwd``, ``/etc/group`` and ``/etc/shadow`` by path."""
    hashes = {words[0]: words[1] for words in _lines(files.get("/etc/shadow", ""), 2)}
    groups = tuple(
        GroupAccount(words[0], int(words[2]), tuple(each for each in words[3].split(",") if each))
        for words in _lines(files.get("/etc/group", ""), 4)
        if words[2].isdecimal()
    )
    primary = {each.gid: each.name for each in groups}
    users = tuple(
        User(
            words[0],
            int(words[2]),
            int(words[3]),
            words[4],
            words[5],
            words[6],
            hashes.get(words[0], ""),
            tuple(sorted(each.name for each in groups if words[0] in each.members)),
            primary.get(int(words[3]), ""),
        )
        for words in _lines(files.get("/etc/passwd", ""), 7)
        if words[2].isdecimal() and words[3].isdecimal()
    )
    return Accounts(users, groups)


def changed_accounts(
    before: Accounts, after: Accounts, keys: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[User, ...], tuple[GroupAccount, ...], tuple[str, ...]]:
    """Return new or changed users, new groups, and what a MachineConfig cannot carry, a clause each."""
    old = {each.name: each for each in before.users}
    users, wrong = [], []
    for user in after.users:
        known = old.pop(user.name, None)
        given = replace(user, keys=keys.get(user.name, ()))
        if known is None or (known == user and given.keys):
            users.append(given)
        elif known != user:
            if user.name == CORE and replace(known, password=user.password) == user:
                users.append(given)
            else:
                wrong.append(f"it changes the user {user.name}")
    wrong += [f"it removes the user {name}" for name in old]
    known_groups = {each.name: each for each in before.groups}
    own = {user.primary for user in users if user.primary == user.name and user.name not in before.names}
    groups = []
    for group in after.groups:
        known_group = known_groups.pop(group.name, None)
        if known_group is None and group.name not in own:
            groups.append(group)
        elif known_group is not None and known_group.gid != group.gid:
            wrong.append(f"it changes the group {group.name}")
    wrong += [f"it removes the group {name}" for name in known_groups if name not in old]
    return tuple(users), tuple(groups), tuple(wrong)


def _lines(text: str, fields: int) -> list[list[str]]:
    found = (line.split(":") for line in text.splitlines() if line and not line.startswith("#"))
    return [words for words in found if len(words) >= fields and words[0]]
