"""The context of a render and its ``$ARGOCD_APP_…`` variables: :class:`RenderContext`, :func:`build_environment`.

``assembly`` creates the context, the renderers use both. Pure. Names and values: Argo CD
``docs/user-guide/build-environment`` (reference argocd-app 5.6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SPECIAL = frozenset("*#$@!?-0123456789")
_SHORT, _SHORT_8 = 7, 8
_VERSION = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RenderContext:
    """``application`` is the instance name, ``namespace`` that of the destination; versions are the destination's.

    Contexts are equal whatever the versions are: a definition that an operation installs must not make it another one.
    """

    application: str = ""
    project: str = ""
    namespace: str = ""
    kube_version: str = field(default="", compare=False)
    api_versions: tuple[str, ...] = field(default=(), compare=False)
    content: str = ""
    """What is known of manifests that a hub rendered for the Application; empty: its sources are read."""
    source: str = ""
    """The Application's annotation ``syncline.dev/source``: what a source without a chart is a chart's values of."""

    @property
    def name(self) -> str:
        """The Application's name without the namespace that may prefix an instance name."""
        return self.application.rpartition("_")[2]


NO_CONTEXT = RenderContext()
"""Of a render that belongs to no Application."""


def plain_version(text: str) -> str:
    """Return the numbers of a Kubernetes version, for charts and plugins: ``v1.36.0+k3s1`` becomes ``1.36.0``. Other
    texts are returned unchanged."""
    found = _VERSION.match(text)
    return ".".join(str(int(part)) for part in found[1].split(".")) if found else text


def build_environment(context: RenderContext, *, url: str, path: str, revision: str, sha: str) -> dict[str, str]:
    """Return the variables of a source at a commit; ``revision`` is the requested one."""
    return {
        "ARGOCD_APP_NAME": context.application,
        "ARGOCD_APP_NAMESPACE": context.namespace,
        "ARGOCD_APP_PROJECT_NAME": context.project,
        "ARGOCD_APP_REVISION": sha,
        "ARGOCD_APP_REVISION_SHORT": sha[:_SHORT],
        "ARGOCD_APP_REVISION_SHORT_8": sha[:_SHORT_8],
        "ARGOCD_APP_SOURCE_PATH": path,
        "ARGOCD_APP_SOURCE_REPO_URL": url,
        "ARGOCD_APP_SOURCE_TARGET_REVISION": revision,
    }


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace ``$NAME`` and ``${NAME}`` in ``text``; unknown names become empty, ``$$`` a dollar (Go os.Expand)."""
    parts: list[str] = []
    at = 0
    while (dollar := text.find("$", at)) >= 0 and dollar + 1 < len(text):
        parts.append(text[at:dollar])
        name, width = _name(text, dollar + 1)
        if name:
            parts.append("$" if name == "$" else environment.get(name, ""))
        elif width == 0:
            parts.append("$")
        at = dollar + 1 + width
    return "".join(parts) + text[at:]


def _name(text: str, at: int) -> tuple[str, int]:
    """Return the name after a dollar and its width; invalid syntax has a width but no name."""
    if text[at] == "{":
        end = text.find("}", at)
        return ("", 1) if end < 0 else (text[at + 1 : end], end - at + 1)
    if text[at] in _SPECIAL:
        return text[at], 1
    end = at
    while end < len(text) and text[end].isascii() and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[at:end], end - at
