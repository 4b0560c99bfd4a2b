"""Opens a document in the user's editor."""

from __future__ import annotations

import click

from syncline.cli.frame.failure import CommandFailed
from syncline.kube.objects import Obj


def edited(spec: Obj) -> Obj | None:
    """Return ``spec`` as edited in $EDITOR; None if unchanged. Raises CommandFailed."""
    from syncline.kube.yaml.loading import YamlError, dump, load

    text = click.edit(dump(spec), extension=".yaml")
    try:
        made = spec if text is None else load(text, file="spec")
    except YamlError as error:
        raise CommandFailed(str(error)) from error
    if not isinstance(made, dict):
        raise CommandFailed("the spec is a mapping; nothing was written")
    return None if made == spec else made
