"""Parses ``kustomize.buildOptions`` of ``argocd-cm``, the operator's flags of ``kustomize build``: :func:`parse_flags`.

``assembly`` reads the setting, ``sources/rendering/renderer.py`` passes it to the engine. Source: kustomize 5.8
``commands/build``; Argo CD ``util/kustomize`` passes the text on unchanged.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from syncline.sources.errors import Problem, SourceError

FIELD = "kustomize.buildOptions"
_SWITCHES = {
    "--enable-helm": "helm",
    "--enable-alpha-plugins": "plugins",
    "--enable-exec": "execs",
    "--as-current-user": "",
    "--network": "network",
    "--helm-debug": "",
    "--enable-managedby-label": "",
    "--enable-star": "",
    "--allow-id-changes": "",
}
_VALUES = ("--load-restrictor", "--load_restrictor", "--reorder", "--helm-kube-version", "--helm-api-versions")
_UNUSED = ("--helm-command", "--network-name", "--mount", "--env", "-e", "--output", "-o")
"""Taken with their value, and without a meaning here: Helm is found by itself, functions have no network, the output
is ours."""


@dataclass(frozen=True, slots=True)
class BuildFlags:
    """``helm``: render charts; ``plugins``: run third-party generators and transformers, by a kustomize program;
    ``execs``: also functions that are programs. ``order``: ``legacy``, ``none``, or empty for the default."""

    helm: bool = False
    unrestricted: bool = False
    order: str = ""
    plugins: bool = False
    execs: bool = False
    network: bool = False
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


NO_FLAGS = BuildFlags()


def no_flags() -> BuildFlags:
    """Return the flags of builds without the setting."""
    return NO_FLAGS


def parse_flags(text: str) -> BuildFlags:
    """Parse the flags; raises :class:`SourceError` for those that ``kustomize build`` does not have."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _wrong(f"{text!r}: {error}") from None
    switches: dict[str, bool] = {}
    values: dict[str, list[str]] = {}
    words.reverse()
    while words:
        name, equals, value = words.pop().partition("=")
        if name in _SWITCHES:
            switches[_SWITCHES[name]] = value.lower() not in ("false", "f", "0")
        elif name in (*_VALUES, *_UNUSED):
            if not equals and not words:
                raise _wrong(f"flag needs an argument: {name}")
            values.setdefault(name.replace("_", "-"), []).append(value if equals else words.pop())
        else:
            known = ", ".join(sorted([*_SWITCHES, *_VALUES]))
            raise _wrong(f"unknown flag: {name or '='}", fix=f"known are {known}")
    return BuildFlags(
        helm=switches.get("helm", False),
        unrestricted=_one(values, "--load-restrictor", ("LoadRestrictionsRootOnly", "rootOnly"), ("none",))
        in ("LoadRestrictionsNone", "none"),
        order=_one(values, "--reorder", ("legacy",), ()),
        plugins=switches.get("plugins", False),
        execs=switches.get("execs", False),
        network=switches.get("network", False),
        kube_version=values.get("--helm-kube-version", [""])[-1],
        api_versions=tuple(one for each in values.get("--helm-api-versions", ()) for one in each.split(",") if one),
    )


_ALLOWED = {"--load-restrictor": ("LoadRestrictionsRootOnly", "LoadRestrictionsNone"), "--reorder": ("legacy", "none")}


def _one(values: dict[str, list[str]], name: str, *aliases: tuple[str, ...]) -> str:
    """Return the last value of a flag with two values; ``rootOnly`` and ``none`` are older names of restrictors."""
    given = values.get(name, [""])[-1]
    allowed = (*_ALLOWED[name], *(one for each in aliases for one in each))
    if given and given not in allowed:
        raise _wrong(f"{name}: {given!r} is none of {', '.join(_ALLOWED[name])}")
    return given


def _wrong(message: str, fix: str = "") -> SourceError:
    return SourceError(Problem.INVALID, f"argocd-cm {FIELD}: {message}", field=FIELD, fix=fix)
