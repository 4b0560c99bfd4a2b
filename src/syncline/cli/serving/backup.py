"""``syncline backup`` and ``syncline restore``: save a data directory to one file, and restore it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from syncline.assembly.inspection.archive import BUMP, ArchiveError, Backup, restore, take_backup
from syncline.base.clock import SystemClock
from syncline.base.scratch import scratch
from syncline.cli.access.connection import state_directory
from syncline.cli.frame.failure import USAGE, CommandFailed

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Data directory [default: that of `syncline up`].",
)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@data_option
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: Path, data: Path | None, force: bool) -> int:
    """Write a backup of a cluster's data to FILE, while it serves or not; FILE - is standard output.

    It holds one moment of all objects, the cluster's keys and its machines; not the keys of --encrypt-secrets. Its
    readers control the cluster: its mode is 0600, keep it so.

    \b
    Example: syncline backup cluster.backup
             syncline backup --data /var/lib/syncline - | age -r … > cluster.backup.age
    """
    directory = data or state_directory() / "data"
    try:
        if str(file) == "-":
            if sys.stdout.isatty():
                raise CommandFailed("a backup is no text for a terminal; name a file, or pipe it on", USAGE)
            with scratch() as folder:
                taken = take_backup(directory, sys.stdout.buffer, folder, SystemClock().now())
            sys.stdout.buffer.flush()
        else:
            taken = _to_file(directory, file, force)
    except ArchiveError as error:
        raise CommandFailed(str(error)) from error
    print(f"backup      {file}, {_summary(taken)}", file=sys.stderr)
    print(f"contains    {_contains(taken)}", file=sys.stderr)
    return 0


def _to_file(directory: Path, file: Path, force: bool) -> Backup:
    """Write the backup; the file gets its name only when it is complete and on disk."""
    if file.exists() and not force:
        raise CommandFailed(f"{file}: exists; name another file, or add --force", USAGE)
    draft = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            taken = take_backup(directory, out, draft.absolute().parent, SystemClock().now())
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, file)
    except OSError as error:
        raise CommandFailed(f"{file}: cannot be written ({error.strerror}); name another place") from error
    finally:
        draft.unlink(missing_ok=True)
    return taken


@click.command("restore")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@data_option
@click.option(
    "--bump-revision",
    type=click.IntRange(min=1, max=10**15),
    default=BUMP,
    show_default=True,
    help="How much later revisions go on, so that none is given twice: more than was written since the backup.",
)
def put_back(file: Path, data: Path | None, bump_revision: int) -> int:
    """Put a backup into an empty data directory; FILE - is standard input.

    Every byte is checked against the backup's checksums first, and the directory is there whole or not at all. Clients
    that saw later revisions hear 410 and list again. Nothing is overwritten: move old data away before.

    \b
    Example: mv ~/.local/state/syncline/data /tmp/old && syncline restore cluster.backup && syncline up
    """
    directory = data or state_directory() / "data"
    try:
        if str(file) == "-":
            found = restore(sys.stdin.buffer, "standard input", directory, bump_revision)
        else:
            with file.open("rb") as source:
                found = restore(source, str(file), directory, bump_revision)
    except OSError as error:
        raise CommandFailed(f"{file}: cannot be read ({error.strerror})") from error
    except ArchiveError as error:
        raise CommandFailed(str(error)) from error
    print(f"restored    {directory}, {_summary(found)}")
    if found.sealed:
        print("next        start with --encrypt-secrets and the key file of then")
    return 0


def _summary(backup: Backup) -> str:
    size = f"{backup.size_bytes / 2**20:.1f} MiB in {backup.files} files"
    return f"{backup.objects} objects at revision {backup.revision}, {size}, taken {backup.taken}"


def _contains(backup: Backup) -> str:
    what = ["the cluster's private keys"]
    if backup.secrets:
        what.append(f"{backup.secrets} Secrets in the clear")
    if backup.sealed:
        what.append("encrypted values, whose keys it does not contain")
    return "; ".join(what) + "; keep it as safe as the cluster"
