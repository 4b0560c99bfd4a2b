"""``syncline ignition``: validates, converts and merges machine configurations without any binary.

``validate`` is a drop-in for ``ignition-validate``: same texts, streams and exit codes; for a Butane file or a
MachineConfig it adds a hint on standard error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.terminal import plain_bytes, print_exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncline.ignition.report import Report
    from syncline.ignition.versions.anyversion import Known

HEAD = 4096
"""Bytes read to recognize a file that is not Ignition."""
_FORMS = click.Choice(("json", "yaml"))


def _output() -> Callable[..., Any]:
    text = "json: one line as upstream writes it; yaml: for machine configs."
    return click.option("-o", "--output", "form", type=_FORMS, default="json", show_default=True, help=text)


def _pretty() -> Callable[..., Any]:
    return click.option("-p", "--pretty", is_flag=True, help="Indent JSON by two spaces.")


@click.group(cls=Group, context_settings=CONTEXT)
def ignition() -> None:
    """Validate, convert and merge Ignition configurations, versions 1, 2.0 to 2.4 and 3.0 to 3.7."""


@ignition.command()
@click.argument("file")
@click.option(
    "--machine-config",
    is_flag=True,
    help="Judge as the Machine Config Operator: 2.0 to 2.2 and 3.0 to 3.5, no file mode above 0777.",
)
@click.option("-o", "--output", "form", type=_FORMS, default=None, help="The report as data.")
def validate(file: str, machine_config: bool, form: str | None) -> None:
    """Validate a configuration of version 3.x, as ignition-validate does. FILE may be - for standard input.

    \b
    Example: syncline ignition validate config.ign
             syncline ignition validate --machine-config - < config.ign
    \b
    Exit codes: 0 it is valid, also with warnings; 1 it is not
    """
    raw = _read(file)
    if machine_config:
        from syncline.ignition.versions.converting import refusal

        problem = refusal(raw)
        if problem is not None:
            _tell(_mistaken(raw, file))
            raise CommandFailed(problem.rstrip("\n"), FAILED)
        return
    from syncline.ignition.parsing import parse

    _, report, error = parse(raw)
    if form:
        from syncline.cli.frame.output import print_documents

        print_documents({"valid": error is None, "error": error, "entries": _entries(report)}, form)
        sys.exit(FAILED if error else 0)
    if report:
        _print(str(report).strip() + "\n")
    if error:
        _tell(_mistaken(raw, file))
    if report.fatal:
        sys.exit(FAILED)
    if error:
        _stop(f"couldn't parse config: {error}")


@ignition.command()
@click.argument("file", default="-")
@click.option("-t", "--to", "version", required=True, help="The version, like 3.4.0, 3.5 or 2.2.0.")
@click.option(
    "--filesystem",
    "filesystems",
    multiple=True,
    metavar="NAME=PATH",
    help="Where a filesystem that 2.x names is mounted; 3.x has no names. Repeatable.",
)
@click.option("--machine-config", is_flag=True, help="Read as the Machine Config Operator: 2.x without duplicates.")
@_output()
@_pretty()
def convert(
    file: str, version: str, filesystems: tuple[str, ...], machine_config: bool, form: str, pretty: bool
) -> None:
    """Print a configuration in another version, newer or older. Warnings go to standard error.

    \b
    Example: syncline ignition convert --to 3.5.0 old.ign
             syncline ignition convert --to 3.4 --filesystem var=/var < spec2.ign
             syncline ignition convert --to 2.2.0 -o yaml config.ign
    \b
    Exit codes: 0 done; 1 it is not valid, or the other version cannot say it
    """
    from syncline.ignition.versions.anyversion import Known, bring, known_version, losses, read_any
    from syncline.ignition.versions.converting import CURRENT, ConversionError, parse_and_convert

    mounts = _mounts(filesystems)
    try:
        target = known_version(version)
    except ValueError as problem:
        raise CommandFailed(str(problem), USAGE) from None
    raw = _read(file)
    try:
        known = Known(CURRENT, parse_and_convert(raw), "") if machine_config else read_any(raw, mounts)
        converted = bring(known, target)
    except ConversionError as problem:
        _tell(_mistaken(raw, file))
        raise CommandFailed(f"{file}: {str(problem).rstrip()}", FAILED) from None
    _tell(known.warnings + "".join(f"warning: {target} cannot hold {loss}\n" for loss in losses(known, target)))
    _show(converted, form, pretty)


@ignition.command()
@click.argument("parent")
@click.argument("children", nargs=-1, required=True, metavar="CHILD...")
@click.option("-t", "--to", "version", default=None, help="Of the result; the newest of the given ones if not said.")
@_output()
@_pretty()
def merge(parent: str, children: tuple[str, ...], version: str | None, form: str, pretty: bool) -> None:
    """Merge configurations into a parent, in this order, as Ignition does for ignition.config.merge.

    Each is validated, then converted to one version. The result is printed; its problems go to standard
    error.

    \b
    Example: syncline ignition merge base.ign site.ign node.ign
             syncline ignition merge --to 3.4.0 -o yaml base.ign site.ign
    \b
    Exit codes: 0 done; 1 one of them, or the result, is not valid
    """
    from syncline.ignition.merging import merge as merge_configs
    from syncline.ignition.parsing import validate as judge
    from syncline.ignition.schema import version_text
    from syncline.ignition.versions.anyversion import bring, known_version, read_any
    from syncline.ignition.versions.converting import ConversionError

    found: list[Known] = []
    for file in (parent, *children):
        raw = _read(file)
        try:
            found.append(read_any(raw))
        except ConversionError as problem:
            _tell(_mistaken(raw, file))
            raise CommandFailed(f"{file}: {str(problem).rstrip()}", FAILED) from None
        _tell(found[-1].warnings)
    try:
        target = known_version(version or version_text(max(known.minor for known in found)))
    except ValueError as problem:
        raise CommandFailed(str(problem), USAGE) from None
    if target.major == 2:
        raise CommandFailed("2.x is merged by other rules; merge as 3.x and convert the result", USAGE)
    try:
        merged, *over = (bring(known, target) for known in found)
    except ConversionError as problem:
        raise CommandFailed(str(problem).rstrip(), FAILED) from None
    for child in over:
        merged = merge_configs(target.minor, merged, child)
    _show(merged, form, pretty)
    report = judge(merged, str(target))
    _tell(str(report))
    if report.fatal:
        sys.exit(FAILED)


# -- streams ---------------------------------------------------------------------------------------------------------


def _read(file: str) -> bytes:
    from syncline.ignition.jsontext import SIZE_MAX

    try:
        if file == "-":
            content: bytes = sys.stdin.buffer.read(SIZE_MAX + 1)
            return content
        with Path(file).open("rb") as stream:
            return stream.read(SIZE_MAX + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        _stop(f"couldn't read config: open {file}: {reason.lower()}")


def _mistaken(raw: bytes, file: str) -> str:
    """Return a hint for a file that is Butane or a MachineConfig instead of Ignition."""
    head = raw[:HEAD]
    if re.search(rb"(?m)^variant:", head):
        return f"hint: {file} is Butane; `syncline butane {file}` makes Ignition of it\n"
    if re.search(rb"""["']?kind["']?\s*:\s*["']?MachineConfig\b""", head):
        return f"hint: {file} is a MachineConfig; `syncline mc render worker --offline -f {file}` judges all of it\n"
    return ""


def _mounts(filesystems: tuple[str, ...]) -> dict[str, str]:
    mounts: dict[str, str] = {}
    for text in filesystems:
        name, equals, path = text.partition("=")
        if not equals or not path.startswith("/"):
            raise CommandFailed(f"--filesystem {text!r}: give NAME=PATH with an absolute path", USAGE)
        mounts[name] = path
    return mounts


def _entries(report: Report) -> list[dict[str, Any]]:
    from syncline.ignition.report import path_text

    return [
        {"severity": entry.severity.value, "message": entry.message}
        | ({"path": path_text(entry.path)} if entry.path else {})
        | ({"line": entry.line, "column": entry.column} if entry.line else {})
        for entry in report.entries
    ]


def _show(config: dict[str, Any], form: str, pretty: bool) -> None:
    if form == "yaml":
        from syncline.kube.yaml.loading import dump as dump_yaml

        _print(dump_yaml(config))
        return
    from syncline.ignition.jsontext import dump

    _print(dump(config, indent=2 if pretty else None) + "\n")


def _print(text: str) -> None:
    print_exact(text)


def _tell(text: str) -> None:
    click.echo(plain_bytes(text.encode("utf-8", "replace")), nl=False, err=True)


def _stop(message: str) -> NoReturn:
    _tell(f"{message}\n")
    sys.exit(FAILED)
