"""``syncline ansible capture``: what is refused before any playbook runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from syncline.cli.ansible.capture import capture_playbook
from syncline.cli.frame.failure import CommandFailed

PINNED = "collections: [{name: a.b, version: 1.0.0, source: 'http://127.0.0.1:9/'}]"
FILES = {
    "project/site.yml": "[]",
    "ranges.yml": "collections: [{name: a.b, version: '>=1'}]",
    "folder.yml": "collections: [{name: ./gone, type: dir}]",
    "pinned.yml": PINNED,
    "secrets.yaml": "kind: ConfigMap\n",
    "facts": "[]",
}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--requirements ranges.yml", "ranges.yml: collections[0]: a.b with version '>=1' is not pinned: name one"),
        ("--requirements folder.yml", "there is no gone in the playbook's folder; give a path below it"),
        ("--requirements pinned.yml --credentials secrets.yaml", "only Secrets of repositories are read there"),
        ("--facts-from facts", "facts are a JSON object, as `ansible -m setup` prints it"),
        ("--extra-vars a", "--extra-vars a: write KEY=VALUE or @FILE"),
        ("--project elsewhere", "does not contain"),
    ],
)
def test_what_is_wrong_with_the_options_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("project", "elsewhere"):
        (tmp_path / name).mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(CommandFailed) as failed:
        command = ["project/site.yml", "--pool", "worker", *words.split()]
        CliRunner().invoke(capture_playbook, command, catch_exceptions=False)
    assert sentence in str(failed.value)
