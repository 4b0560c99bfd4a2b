"""``syncline kustomize build``: a drop-in for ``kustomize build`` that needs no binary.

Reads folders of this machine's disk, as the original does, and prints YAML. Nothing is written, run or fetched:
charts, plugins, functions and remote bases are refused.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import click

from syncline.base.clock import SystemClock
from syncline.cli.failure import CommandFailed
from syncline.sources.errors import SourceError
from syncline.sources.kustomize.build import build as build_kustomization
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.loader import DEFAULT_LIMITS, Source
from syncline.sources.tree import SYMLINK_MODE, Entry

__all__ = ["DiskFiles", "kustomize"]

_FLAG_WARNING = "Flag --reorder has been deprecated, use the new 'sortOptions' field in kustomization.yaml instead."
_REFUSED = "is refused: no programs are run; render the chart or the function's output on its own"


class DiskFiles:
    """The disk from its root; paths are relative to ``/``. Only what a build names is looked at."""

    absolute_links = True

    def entry(self, path: str) -> Entry | None:
        try:
            found = os.lstat(f"/{path}")
        except (OSError, ValueError):
            return None
        if stat.S_ISLNK(found.st_mode):
            return Entry(path, SYMLINK_MODE, "", found.st_size)
        return Entry(path, "100644", "", found.st_size) if stat.S_ISREG(found.st_mode) else None

    def is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(f"/{path}").st_mode)
        except (OSError, ValueError):
            return False

    def read(self, entry: Entry) -> bytes:
        try:
            if entry.is_symlink:
                return os.readlink(f"/{entry.path}".encode())
            with open(f"/{entry.path}", "rb") as stream:
                content = stream.read(DEFAULT_LIMITS.bytes + 1)
        except OSError as error:
            raise BuildError(f"open /{entry.path}: {error.strerror}") from None
        if len(content) > DEFAULT_LIMITS.bytes:
            raise BuildError(f"/{entry.path} has more than {DEFAULT_LIMITS.bytes} bytes")
        return content


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def kustomize() -> None:
    """Build kustomizations without any binary."""


@kustomize.command()
@click.argument("path", default=".")
@click.option(
    "--load-restrictor",
    type=click.Choice(["LoadRestrictionsRootOnly", "LoadRestrictionsNone"]),
    default="LoadRestrictionsRootOnly",
    help="LoadRestrictionsNone lets files lie outside the folder of their kustomization.",
)
@click.option("--reorder", type=click.Choice(["legacy", "none"]), default=None, help="Order of the output.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--enable-helm", is_flag=True, hidden=True)
@click.option("--enable-alpha-plugins", is_flag=True, hidden=True)
@click.option("--enable-exec", is_flag=True, hidden=True)
def build(
    path: str,
    load_restrictor: str,
    reorder: str | None,
    output: Path | None,
    enable_helm: bool,
    enable_alpha_plugins: bool,
    enable_exec: bool,
) -> None:
    """Print the manifests that the kustomization in PATH builds, as kustomize 5.8 does.

    \b
    Example:   syncline kustomize build overlays/production
    """
    flags = {"--enable-helm": enable_helm, "--enable-alpha-plugins": enable_alpha_plugins, "--enable-exec": enable_exec}
    for flag, given in flags.items():
        if given:
            raise CommandFailed(f"{flag} {_REFUSED}")
    if reorder:
        print(_FLAG_WARNING, file=sys.stderr)
    source = Source(DiskFiles(), label="/", restricted=load_restrictor != "LoadRestrictionsNone")
    try:
        built = build_kustomization(source, os.path.realpath(path).lstrip("/"), order=reorder or "")
    except SourceError as error:
        raise CommandFailed(str(error)) from None
    for warning in built.warnings:
        print(warning, file=sys.stderr)
    for notice in built.notices:
        print(f"{SystemClock().now().astimezone():%Y/%m/%d %H:%M:%S} {notice}", file=sys.stderr)
    if output is not None:
        output.write_text(built.text)
    else:
        sys.stdout.write(built.text)
        sys.stdout.flush()
