"""Writes exported objects to files that only their owner may read, as they may contain credentials."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from syncline.cli.frame.failure import CommandFailed
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump


def text_of(objects: Sequence[Obj], form: str = "yaml") -> str:
    """Return all objects as one text."""
    if form == "json":
        return "\n".join(json.dumps(one, indent=2, ensure_ascii=False) for one in objects) + "\n"
    return "---\n".join(dump(one) for one in objects)


def written(path: Path, objects: Sequence[Obj], form: str = "yaml") -> None:
    """Write a new file, or replace a file atomically. Raises CommandFailed."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text_of(objects, form))
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}") from error
