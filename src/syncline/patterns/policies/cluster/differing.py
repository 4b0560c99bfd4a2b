"""The difference that a policy records of an object: :func:`recorded`; pure."""

from __future__ import annotations

import difflib
from typing import Final

from syncline.kube.objects import GroupKind, Obj, name_of, namespace_of
from syncline.kube.yaml.loading import dump

CENSORED: Final = "Censored"
IN_STATUS: Final = "InStatus"
MOST_LINES: Final = 50
MOST_COMPARED: Final = 5_000
"""Lines of an object up to which its difference is made."""
_CENSORED_TEXT: Final = (
    "# The difference is redacted because it contains sensitive data. To override, the "
    'spec["object-templates"][].recordDiff field must be set to "InStatus" for the difference to be recorded '
    "in the policy status. Consider existing access to the ConfigurationPolicy objects and the etcd "
    "encryption configuration before you proceed with an override."
)
_SECRETIVE: Final = frozenset(
    (
        *(GroupKind("", kind) for kind in ("ConfigMap", "Secret")),
        *(GroupKind("oauth.openshift.io", kind) for kind in ("OAuthAccessToken", "OAuthAuthorizeTokens")),
        GroupKind("route.openshift.io", "Route"),
    )
)
"""Kinds whose differences are not recorded unless the policy asks for it."""


def record_mode(given: str, kind: GroupKind, sensitive: bool) -> str:
    """Return what is recorded: as given; else nothing that may be secret."""
    if given:
        return given
    return CENSORED if sensitive or kind in _SECRETIVE else IN_STATUS


def recorded(mode: str, live: Obj, updated: Obj) -> str:
    """Return the unified difference of two objects, as the mode allows."""
    if mode == CENSORED:
        return _CENSORED_TEXT
    if mode != IN_STATUS:
        return ""
    name = "/".join(filter(None, (namespace_of(live), name_of(live))))
    # Upstream's library takes the end of a text for one more, empty line.
    old, new = ([*dump(one).splitlines(keepends=True), "\n"] for one in (live, updated))
    longest = max(len(old), len(new))
    if longest > MOST_COMPARED:
        return f"# The difference is not recorded: the object has {longest} lines, of at most {MOST_COMPARED}."
    lines = list(difflib.unified_diff(old, new, f"{name} : existing", f"{name} : updated", n=5))
    if len(lines) <= MOST_LINES + 3:
        return "".join(lines)
    return f"# Truncated: showing {MOST_LINES}/{len(lines) + 1} diff lines:\n" + "".join(lines[: MOST_LINES + 3])
