"""A typing error must not make an empty application of a folder."""

from __future__ import annotations

import pytest

from syncline.sources.directory import DirectoryOptions, read_manifests, select_files
from syncline.sources.errors import SourceError
from syncline.sources.tree import MemoryTree

GOOD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
BROKEN = b"greeting: [unclosed\n"


def test_a_folder_of_nothing_but_broken_files_is_an_error_with_file_and_line() -> None:
    tree = MemoryTree({"a.yaml": BROKEN})
    with pytest.raises(SourceError, match=r"a\.yaml"):
        read_manifests(tree, select_files(tree, DirectoryOptions()))


def test_a_broken_file_beside_manifests_is_passed_over_with_a_word() -> None:
    tree = MemoryTree({"a.yaml": BROKEN, "b.yaml": GOOD})
    read = read_manifests(tree, select_files(tree, DirectoryOptions()))
    assert len(read.objects) == 1
    assert "passed over" in read.warnings[0]


def test_helm_values_are_no_manifests_and_no_trouble() -> None:
    tree = MemoryTree({"values.yaml": b"replicas: 3\n", "b.yaml": GOOD})
    read = read_manifests(tree, select_files(tree, DirectoryOptions()))
    assert (len(read.objects), read.warnings) == (1, ())
