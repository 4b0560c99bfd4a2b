"""``syncline kustomize build``: a drop-in for ``kustomize build`` that needs no binary.

Reads local folders like the original, and prints YAML. Nothing is written or fetched: charts come from the chart
folder, remote bases are refused. Plugins and functions are programs for the ``kustomize`` program, so that one on PATH
takes over.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import NoReturn

import click

from syncline.base.clock import SystemClock
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.terminal import print_exact
from syncline.sources.errors import SourceError
from syncline.sources.kustomize.build import build as build_kustomization
from syncline.sources.kustomize.charts import Charts
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.flags import BuildFlags
from syncline.sources.kustomize.loader import DEFAULT_LIMITS, Source
from syncline.sources.tree import SYMLINK_MODE, Entry

_FLAG_WARNING = "Flag --reorder has been deprecated, use the new 'sortOptions' field in kustomization.yaml instead."
_PROGRAM = "kustomize"


class DiskFiles:
    """The disk from its root; paths are relative to ``/``. Only files that a build names are read."""

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

    def listing(self, path: str) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []
        for base, folders, names in os.walk(f"/{path}"):
            for name in sorted([*names, *(one for one in folders if os.path.islink(os.path.join(base, one)))]):
                whole = os.path.join(base, name)
                found.append((os.path.relpath(whole, f"/{path}"), os.path.islink(whole)))
                if len(found) > DEFAULT_LIMITS.files:
                    raise BuildError(f"/{path} has more than {DEFAULT_LIMITS.files} files")
        return sorted(found)

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


def _hand_over() -> NoReturn:
    """Replace this process by the kustomize program, with the same arguments."""
    program = shutil.which(_PROGRAM)
    if program is None:
        message = "plugins and functions are programs for kustomize, and there is no kustomize on PATH"
        raise CommandFailed(f"{message}; install kustomize, or leave --enable-alpha-plugins and --enable-exec away")
    words = sys.argv[sys.argv.index("build") :]
    os.execv(program, [program, *words])


@click.group(cls=Group, context_settings=CONTEXT)
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
@click.option("--enable-helm", is_flag=True, help="Inflate the charts that kustomizations name.")
@click.option("--helm-kube-version", default="", help="The Kubernetes version that charts see.")
@click.option("--helm-api-versions", multiple=True, help="An API version that charts see; repeatable.")
@click.option("--helm-command", hidden=True, help="Taken and unused: Helm is found by itself.")
@click.option("--enable-alpha-plugins", is_flag=True, help="Run plugins, with kustomize on PATH.")
@click.option(
    "--enable-exec", is_flag=True, help="Run functions that are programs, with the kustomize program on PATH."
)
def build(
    path: str,
    load_restrictor: str,
    reorder: str | None,
    output: Path | None,
    enable_helm: bool,
    helm_kube_version: str,
    helm_api_versions: tuple[str, ...],
    helm_command: str | None,
    enable_alpha_plugins: bool,
    enable_exec: bool,
) -> None:
    """Print the manifests that the kustomization in PATH builds, as kustomize 5.8 does.

    \b
    Example:   syncline kustomize build overlays/production
    """
    if enable_alpha_plugins or enable_exec:
        _hand_over()
    if reorder:
        print(_FLAG_WARNING, file=sys.stderr)
    flags = BuildFlags(helm=enable_helm, kube_version=helm_kube_version, api_versions=helm_api_versions)
    source = Source(
        DiskFiles(),
        label="/",
        restricted=load_restrictor != "LoadRestrictionsNone",
        charts=Charts(flags) if enable_helm else None,
    )
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
        print_exact(built.text)
