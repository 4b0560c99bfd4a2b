"""Explains why an update touches nodes: differing fields, their actions, the policy and the source; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import Obj, dig, name_of, owner_references
from syncline.machineconfig.agent.actions import NONE, REBOOT, Action, Consequence
from syncline.machineconfig.agent.planning.work import Work
from syncline.machineconfig.ansible.play import ROOT
from syncline.machineconfig.configs.compare import Change, changes
from syncline.machineconfig.render.origins import Part, parts_of
from syncline.machineconfig.render.refusal import RenderError

_KINDS = {
    "osImageURL": ("image",),
    "kernelArguments": ("argument",),
    "fips": ("fips",),
    "kernelType": ("kernel",),
    "extensions": ("extension",),
    "file": ("file",),
    "unit": ("unit",),
    "sshkey": ("user", "group"),
    ANSIBLE_CONFIG.kind: ("file",),
}
"""Parts that belong to a consequence, as the comparison of two configs calls them."""
_PartsBySide = tuple[Mapping[tuple[str, str], Part], Mapping[tuple[str, str], Part]]
"""Parts by kind and name, before and after."""
ALWAYS = "always"
"""Why parts of the system reboot: policies do not govern them."""
SEVERITY = ("none", "reload", "restart", "drain", "reboot")


@dataclass(frozen=True, slots=True)
class Cause:
    """A difference and its effect. ``field``: its path in the MachineConfig; ``change``: the difference; ``actions``:
    what it needs; ``why``: the policy, or that there is none. ``config``: the MachineConfig that sets it, ``origin``:
    its Application or the object that generates it. ``pending``: it would come without the change, too."""

    field: str
    change: str
    actions: tuple[str, ...]
    why: str
    config: str = ""
    origin: str = ""
    pending: bool = False

    def __str__(self) -> str:
        """Return the cause as text: ``kernelArguments + nosmt``, ``file /etc/foo contents (no policy)``."""
        return f"{self.field} {self.change}".strip()

    def to_obj(self) -> Obj:
        return {
            "field": self.field,
            "change": self.change,
            "actions": list(self.actions),
            "why": self.why,
            "machineConfig": self.config,
            "origin": self.origin,
            "pending": self.pending,
        }


@dataclass(frozen=True)
class Sides:
    """MachineConfigs of a pool before and after. ``touched``: names of those created, changed or deleted; ``origins``
    of them by name."""

    before: Sequence[Obj]
    after: Sequence[Obj]
    touched: Collection[str] = ()
    origins: Mapping[str, str] | None = None


def action_text(action: Action) -> str:
    """Return ``reboot``, ``reload crio.service`` or the like; upstream's Special reloads crio."""
    match action.type:
        case "Special":
            return "reload crio"
        case "DaemonReload":
            return "daemon-reload"
        case kind:
            return f"{kind.lower()} {action.service}".strip()


def severity(actions: Collection[str], *, drains: bool) -> str:
    """Return the most severe effect on a node in one word."""
    if "reboot" in actions:
        return "reboot"
    if drains:
        return "drain"
    if any(action.startswith("restart") for action in actions):
        return "restart"
    return "reload" if any(action != "none" for action in actions) else "none"


def causes_of(old: Obj, new: Obj, work: Work, sides: Sides, pending: Collection[tuple[str, str]] = ()) -> list[Cause]:
    """Return the causes, most severe first. ``pending``: consequences that come without the change."""
    found = changes(old.get("spec"), new.get("spec"))
    report = (_parts(sides.before), _parts(sides.after))
    made = [_cause(one, found, report, sides, (one.kind, one.name) in pending) for one in work.parts]
    if not made:
        made = [_quiet(one, report, sides) for one in found]
    return sorted(made, key=lambda cause: -SEVERITY.index(severity(cause.actions, drains="drain" in cause.actions)))


def _parts(configs: Sequence[Obj]) -> Mapping[tuple[str, str], Part]:
    try:
        return {(part.kind, part.name): part for part in parts_of(configs)}
    except RenderError:
        return {}


def _cause(
    one: Consequence,
    found: Sequence[Change],
    report: _PartsBySide,
    sides: Sides,
    pending: bool,
) -> Cause:
    kinds = _KINDS[one.kind]
    mine = [each for each in found if each.kind in kinds and _belongs(one, each.name)]
    config = next((name for each in mine if (name := _source(each, report, sides))), "")
    if not mine and one.name:
        config = _source(Change(kinds[0], one.name, "changed"), report, sides)
    actions = tuple(action_text(action) for action in one.actions) or (action_text(NONE),)
    field = f"{one.kind} {one.name}".strip() if one.kind != "sshkey" else "passwd"
    text = ", ".join(dict.fromkeys(_words(each) for each in mine)) or "written differently, to the same effect"
    return Cause(field, text, actions, _why(one), config, _origin(config, sides), pending)


def _belongs(one: Consequence, name: str) -> bool:
    if one.kind == ANSIBLE_CONFIG.kind:
        return name.startswith(f"{ROOT}/{one.name}/")
    return not one.name or name == one.name


def _quiet(each: Change, report: _PartsBySide, sides: Sides) -> Cause:
    """Return the cause of a part that needs no action."""
    config, field = _source(each, report, sides), f"{each.kind} {each.name}".strip()
    why = "nothing is to be done for it"
    return Cause(field, each.what or each.verb, ("none",), why, config, _origin(config, sides))


def _why(one: Consequence) -> str:
    if one.policy is not None:
        if one.kind == ANSIBLE_CONFIG.kind:
            return f"it runs {one.policy} before"
        return "policy for ssh keys" if one.kind == "sshkey" else f"policy for {one.policy}"
    return "no policy" if one.kind in ("file", "unit") else ALWAYS if REBOOT in one.actions else ""


def _words(change: Change) -> str:
    match change.kind:
        case "argument" | "extension":
            sign = {"added": "+ ", "removed": "- "}.get(change.verb, "")
            return f"{sign}{change.name}" if sign else f"in another {change.what}"
        case "user":
            return f"{change.name}: {change.what or change.verb}"
        case "image" | "kernel" | "fips":
            return _shortened(change.what)
    return change.what or change.verb


def _shortened(text: str) -> str:
    """Return the text with image digests shortened."""
    return " ".join(_short(word) or "<none>" for word in text.split(" "))


def _short(image: str) -> str:
    head, _, rest = image.partition("@")
    mark, _, digest = rest.partition(":")
    return f"{head.rpartition('/')[2]}@{mark}:{digest[:12]}" if digest else image


def _source(change: Change, report: _PartsBySide, sides: Sides) -> str:
    """Return the MachineConfig that decides a part: a touched one if any sets it, else the last one."""
    before, after = report
    part = (before if change.verb == "removed" else after).get((change.kind, change.name)) or before.get(
        (change.kind, change.name)
    )
    names: list[str] = list(part.sources) if part is not None else []
    if not names and len(sides.touched) == 1:
        names = list(sides.touched)
    mine = [name for name in names if name in sides.touched]
    return (mine or names or [""])[-1]


def _origin(config: str, sides: Sides) -> str:
    given = (sides.origins or {}).get(config, "")
    obj = next((one for one in (*sides.after, *sides.before) if name_of(one) == config), None)
    owner = next((one for one in owner_references(obj or {}) if one.get("controller")), None)
    if owner is None or dig(obj, "metadata", "name") != config:
        return given
    made = f"{owner.get('kind')} {owner.get('name')}"
    return f"{made} ({given})" if given else made
