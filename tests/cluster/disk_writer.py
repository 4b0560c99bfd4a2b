"""A process that writes as fast as it can and says what became durable, until it is killed.

Run by ``test_disk``: ``python disk_writer.py FILE``. Each output line is a durable revision.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import syncline.cluster.storage.disk as disk_module
from syncline.cluster.storage.disk import Disk, DiskError, Listener
from syncline.cluster.storage.store import Key, Store


def main() -> None:
    disk_module.PENDING_LIMIT_EVENTS = 64  # Small batches: what a busy cluster makes, and many commits to be killed in.
    disk = Disk(Path(sys.argv[1]))
    store = Store(durable=True)
    loaded = disk.load()
    store.restore(loaded.revision, loaded.objects)

    def durable(revision: int) -> None:
        os.write(1, f"{revision}\n".encode())

    def failed(error: DiskError) -> None:
        os.write(2, str(error).encode())

    disk.follow(store, Listener(durable=durable, full=lambda _: None, space=lambda _: None, failed=failed))
    while True:
        revision = store.revision + 1
        before = Key("/configmaps", "demo", f"c{store.revision}")
        if store.revision % 3 == 0 and store.get(before):
            store.delete(before, expect=None)
        else:
            key = Key("/configmaps", "demo", f"c{revision}")
            store.put(key, {"metadata": {"name": key.name}, "data": {"at": str(revision)}}, expect=0)


if __name__ == "__main__":
    main()
