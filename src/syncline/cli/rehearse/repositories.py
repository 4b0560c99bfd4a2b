"""The option ``--repository URL=FOLDER``: folders of this machine that stand for addresses."""

from __future__ import annotations

from pathlib import Path

from syncline.cli.frame.failure import USAGE, CommandFailed


def folders_of(given: tuple[str, ...]) -> dict[str, Path]:
    """Return the folders by address. Raises CommandFailed (usage)."""
    found = {}
    for text in given:
        url, equals, place = text.rpartition("=")
        if not url or not equals or not Path(place).is_dir():
            raise CommandFailed(f"--repository {text}: allowed: URL=FOLDER, where FOLDER is on this machine", USAGE)
        found[url] = Path(place).resolve()
    return found
