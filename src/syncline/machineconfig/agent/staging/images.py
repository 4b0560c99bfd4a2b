"""Pulls images on the host of a node, and writes the list of images that CRI-O keeps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.agent.steps import PinImages, Pulled, PullImages
from syncline.machineconfig.pinned.images import PINNED_PATH, pinned_file

FETCHED_AT_ONCE = 10
"""Maximum images that one step pulls; changes are observed before the next step."""


def pull_images(hosts: Hosts, action: PullImages) -> Pulled:
    """Pull images. An unavailable image does not stop the others."""
    until, error, fetched = None, "", 0
    for image in action.images:
        found = hosts.pull(action.node, image)
        fetched += found.fetched
        if found.error and not error:
            error = f'failed to pull image "{image}": {found.error}'
        if found.until is not None:
            until = max(until or found.until, found.until)
        if fetched >= FETCHED_AT_ONCE:
            return Pulled(more=True)
    return Pulled(until, error=error)


def pin_images(host: Host, action: PinImages, reload: Callable[[], None]) -> None:
    """Write the list, and call ``reload`` if it changed; restore the file if that fails. Raises UpdateError and
    HostError."""
    old = None
    with contextlib.suppress(HostError):
        old = host.read(PINNED_PATH)
    new = pinned_file(list(action.images)).encode() if action.images else None
    if new == old or (new is not None and old is not None and new.strip() == old.strip()):
        return
    _put(host, new)
    try:
        reload()
    except UpdateError:
        _put(host, old)  # or the next time it would not be reloaded
        raise


def _put(host: Host, content: bytes | None) -> None:
    if content is None:
        host.remove(PINNED_PATH)
    else:
        host.write(PINNED_PATH, content)
