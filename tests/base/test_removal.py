"""What strangers leave is removed, however they left it."""

from __future__ import annotations

import os
from pathlib import Path

from syncline.base.removal import remove_tree


def test_folders_deeper_than_any_path_are_removed(tmp_path: Path) -> None:
    top, here = tmp_path / "top", os.getcwd()
    top.mkdir()
    try:
        os.chdir(top)
        for _ in range(2500):
            os.mkdir("folder")
            os.chdir("folder")
        Path("file").touch()
    finally:
        os.chdir(here)
    remove_tree(top)
    assert list(tmp_path.iterdir()) == []


def test_closed_folders_are_removed_and_links_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    top = tmp_path / "top"
    (top / "closed" / "inner").mkdir(parents=True)
    (top / "link").symlink_to(kept)
    (top / "closed" / "inner" / "link").symlink_to(kept)
    (top / "closed" / "inner" / "same").hardlink_to(kept / "file")
    for folder in (top / "closed" / "inner", top / "closed"):
        folder.chmod(0)
    remove_tree(top)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept"] and (kept / "file").exists()


def test_what_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(tmp_path)
    remove_tree(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
