"""VersionService: which version of argocd's API this is, and which Syncline serves it."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from syncline import __version__
from syncline.kube.objects import Obj
from syncline.web.wire.api import upstream_version
from syncline.web.wire.calls import Call, Handler


def handlers() -> Mapping[str, Handler]:
    """Return the handlers of the service."""
    return {"/version.VersionService/Version": _version}


async def _version(call: Call, _: Obj) -> Obj:
    """Without a login only the version is shown (upstream: ``server/version``)."""
    shown = {"Version": f"{upstream_version()}+syncline.{__version__}"}
    if not call.caller.logged_in:
        return shown
    return shown | {
        "GoVersion": f"Python {platform.python_version()}",
        "Platform": f"{platform.system().lower()}/{platform.machine()}",
        "ExtraBuildInfo": f"Syncline {__version__}",
    }
