"""Sources, data URLs and units judged sentence by sentence; every case was seen to differ once from upstream's verdict
and answered by upstream's program."""

from __future__ import annotations

import json
from typing import Any

import pytest

from syncline.ignition.dataurl import DataUrlError, check_data_url, decode_data_url
from syncline.ignition.parsing import parse
from syncline.ignition.unitfile import UnitError, sections_with_options


def told(section: dict[str, Any], version: str = "3.7.0-experimental", *, release_2_26: bool = False) -> list[str]:
    raw = json.dumps({"ignition": {"version": version}, **section}).encode()
    return [entry.message for entry in parse(raw, release_2_26=release_2_26).report.entries]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("http://host:host:80", ""),
        ("http://host:x", "unable to parse url"),
        ("https://[::1]:80/x", ""),
        ("https://[fe80::1%25en0]/", ""),
        ("https://[fe80::1%25e%c3]/", "unable to parse url"),
        ("tftp://[fe80::1%25en0]`]?[ftp", "unable to parse url"),
        ("https://[1.2.3.4]/", "unable to parse url"),
        ("https://h/%zz", "unable to parse url"),
        ("https://h/#%zz", "unable to parse url"),
        ("https://h/?%zz", ""),
        ("https://a b/", "unable to parse url"),
        (":x", "unable to parse url"),
        ("a/b:c", "invalid url scheme"),
        ("data:/image=%4", "unable to parse url"),
        ("data:;[#==\n", "invalid character for parameter attribute"),
        ("data:,a\nb", "unable to parse url"),
        ("data:;base64,QQ==\n", "unable to parse url"),
        ("s3://b/k?versionId=", "invalid S3 object VersionId"),
        ("s3://b/k?versionId=1;versionId=", ""),
        ("arn:aws:s3:::b", "invalid S3 ARN format"),
        ("arn:aws:s3:r:1:accesspoint/x/object", ""),
        ("arn:aws:s3:r:1:accesspoint/x", "invalid S3 ARN format"),
        ("arn:aws:iam::x:r/y", "invalid S3 ARN format"),
    ],
)
def test_a_source_is_a_url_where_go_says_so(source: str, sentence: str) -> None:
    file = {"path": "/a", "contents": {"source": source}}
    assert told({"storage": {"files": [file]}}) == ([sentence] if sentence else [])


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("data:,a%20b", b"a b"),
        ("data:,a+b", b"a+b"),
        ("data:", "missing comma before data"),
        ("DATA:,", "missing data prefix"),
        ("data:text/plain;charset=utf-8;base64,QUI=", b"AB"),
        ('data:text/plain;a="b\\"c",x', b"x"),
        ('data:text/plain;a="b\\c",x', "invalid syntax"),
        ('data:text/plain;a="b', "unclosed quoted string"),
        ('data:text/plain;a="b"x,', "expected semicolon or comma"),
        ("data:x-foo/bar,x", b"x"),
        ("data:foo/bar,x", "invalid media type"),
        ("data:text", "missing media type slash"),
        ("data:text/plain", "incomplete media type"),
        ("data:;base32,x", "expected base64, got base32"),
        ("data:,%zz", "rfc2396: invalid char 0x25 in unescape sequence"),
        ("data:,%4", "rfc2396: unexpected end of unescape sequence"),
        ("data:,<", "invalid data character"),
        ("data:;base64,QQ", "illegal base64 data at input byte 0"),
        ("data:;base64,QUJDQQ==QQ", "illegal base64 data at input byte 8"),
        ("data:;base64,Q=", "illegal base64 data at input byte 1"),
        ("data:;base64,QQ=Q", "illegal base64 data at input byte 2"),
    ],
)
def test_a_data_url_is_read_strictly(url: str, outcome: bytes | str) -> None:
    if isinstance(outcome, bytes):
        check_data_url(url)
        assert decode_data_url(url) == outcome
        return
    for read in (check_data_url, decode_data_url):
        with pytest.raises(DataUrlError) as refused:
            read(url)
        assert str(refused.value) == outcome


LONG = "x" * 2048


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", frozenset()),
        ("[Unit]\nA=b\n[Empty]\n[Install]\nB=c", frozenset({"Unit", "Install"})),
        ("words before [Unit]\nA=b", frozenset({"Unit"})),
        ("[Unit]\r\nA=b\r\n", frozenset({"Unit"})),
        ("[Unit]\nA=b\\\n[Install]\nB=c", frozenset({"Unit"})),
        ("[Unit]\n# comment \\ \n[Install]\nB=c", frozenset({"Unit"})),
        (f"[Unit]\n# c\\\n{LONG}\\\n\nA=b", frozenset({"Unit"})),
        (f"[Unit]\nA={LONG}", "line too long (max 2048 bytes)"),
        (f"[Unit]\nA={LONG[:2040]}", frozenset({"Unit"})),
        ("[Unit", "unable to find end of section"),
        ("[Unit] x\n", 'found garbage after section name : "x"'),
        ("[Unit]\nfoo\n", "unexpected newline encountered while parsing option name"),
        ("[Unit]\nfoo", "EOF"),
    ],
)
def test_a_unit_is_read_as_strictly_as_upstream_reads_it(text: str, outcome: frozenset[str] | str) -> None:
    if isinstance(outcome, frozenset):
        assert sections_with_options(text) == outcome
        return
    with pytest.raises(UnitError) as refused:
        sections_with_options(text)
    assert str(refused.value) == outcome


@pytest.mark.parametrize(
    ("name", "warned"),
    [
        ("a@b.service", True),
        ("a@.service", False),
        ("@b.service", False),
        ("a@b@c.service", True),
        ("a@\nb.service", False),
    ],
)
def test_an_instance_is_enabled_by_its_template(name: str, warned: bool) -> None:
    template = {"name": "a@.service", "contents": "[Service]\nA=b\n"}
    found = told({"systemd": {"units": [template, {"name": name, "enabled": True}]}})
    assert any("doesn't have Install section" in sentence for sentence in found) == warned


def test_older_releases_refuse_to_delete_beside_an_unnumbered_partition() -> None:
    parts = [{"number": 1, "shouldExist": False}, {"number": 1, "label": "b"}, {"label": "c"}]
    disk = {"storage": {"disks": [{"device": "/dev/a", "partitions": parts}]}}
    sentence = "shouldExist is false for a partition and other partition(s) has start or size 0"
    assert sentence in told(disk, release_2_26=True)
    assert sentence not in told(disk)


def test_the_first_partition_that_another_runs_into_is_named() -> None:
    spans = [(1, 10), (100, 10), (5, 10), (105, 0)]
    parts = [{"label": f"p{start}", "startMiB": start, "sizeMiB": size} for start, size in spans]
    raw = {"ignition": {"version": "3.5.0"}, "storage": {"disks": [{"device": "/dev/a", "partitions": parts}]}}
    _, report, _ = parse(json.dumps(raw).encode())
    assert [(entry.path[-1], entry.message) for entry in report.entries] == [(2, "partitions overlap")]
