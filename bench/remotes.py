"""``python -m bench.remotes FOLDER PORT COUNT``: so many Git remotes, each on a port of its own, in one process.

Serves the repositories ``FOLDER/0.git`` and so on as plain files, each at the port of its number, counted from PORT.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from aiohttp import web

__all__ = ["make_repositories"]

WHO = ("-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "init.defaultBranch=main")


def make_repositories(folder: Path, texts: list[str]) -> None:
    """One for each text, which is its only file; packed, and with what clients of plain files need."""
    for number, text in enumerate(texts):
        work, bare = folder / "work", folder / f"{number}.git"
        work.mkdir(parents=True)
        (work / "a.yaml").write_text(text)
        for command in (
            ("init", "-q", str(work)),
            ("-C", str(work), "add", "."),
            ("-C", str(work), "commit", "-q", "-m", "Objects"),
            ("clone", "-q", "--bare", str(work), str(bare)),
            ("-C", str(bare), "update-server-info"),
        ):
            subprocess.run(["git", *WHO, *command], check=True)
        subprocess.run(["rm", "-r", str(work)], check=True)


async def _serve(folder: Path, port: int, count: int) -> None:
    for number in range(count):
        app = web.Application()
        app.router.add_static("/", folder / f"{number}.git")
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port + number).start()
    print("serving", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
