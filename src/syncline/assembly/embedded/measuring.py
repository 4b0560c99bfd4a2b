"""``/metrics`` of a served cluster: current values of the process and its store.

Called by ``live``; ``cluster.metrics`` counts the requests and writes the text.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from syncline.cluster.serving.metrics import MEDIA_TYPE, Metrics
from syncline.cluster.serving.serve import ApiServer
from syncline.cluster.storage.disk import Disk
from syncline.cluster.storage.store import Store
from syncline.kube.client import Response

PAGES = Path("/proc/self/statm")


def gauges_of(store: Store, server: ApiServer, disk: Disk | None) -> Mapping[str, tuple[str, float]]:
    objects = sum(store.count(each) for each in store.resources())
    kept = (
        {}
        if disk is None
        else {
            "apiserver_storage_size_bytes": ("Data file and its log.", disk.size_bytes()),
            "syncline_disk_refuses_writes": (
                "1 while there is no space or the disk has failed.",
                disk.refusal is not None,
            ),
        }
    )
    return kept | {
        "process_resident_memory_bytes": ("Memory of this process.", _resident_bytes()),
        "syncline_store_objects": ("Objects in the store.", objects),
        "syncline_store_revision": ("Number of the last write.", store.revision),
        "apiserver_longrunning_requests": ("Watches that are open.", server.watching),
        "syncline_connections_open": ("Connections of clients.", server.connections.open),
        "syncline_connections_refused": ("Connections that were one too many.", server.connections.refused),
        "syncline_connections_cut_off": ("Connections that sent no request in time.", server.connections.cut_off),
        "syncline_watches_cut_off": ("Watches whose client took nothing any more.", server.watches_cut_off),
    }


def metrics_answer(metrics: Metrics) -> Response:
    return Response.encoded(200, metrics.text().encode(), {"content-type": MEDIA_TYPE})


def _resident_bytes() -> float:
    """Return the resident memory in bytes; its peak if the kernel does not report it."""
    if PAGES.exists():
        return int(PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
