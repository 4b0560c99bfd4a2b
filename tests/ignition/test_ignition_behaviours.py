"""What the reference promises about Ignition, behaviour by behaviour (74 to 89), and its worked merges (2.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from syncline.ignition.merging import merge
from syncline.ignition.parsing import parse
from syncline.ignition.spec2.parsing import parse2
from syncline.ignition.spec2.translating import TranslationError, translate
from syncline.ignition.typed import canonical
from syncline.ignition.versions.converting import ConversionError, parse_and_convert
from syncline.ignition.versions.negotiate import negotiate
from syncline.ignition.versions.upward import lift

SHA_256 = "sha256-" + "0" * 64


def told(version: str, **sections: Any) -> list[str]:
    """Sentences about a configuration, without places."""
    ignition = {"version": version, **sections.pop("ignition", {})}
    _, report, error = parse(json.dumps({"ignition": ignition, **sections}).encode())
    return [entry.message for entry in report.entries] or ([error] if error else [])


def file(**fields: Any) -> dict[str, Any]:
    return {"files": [{"path": "/a", **fields}]}


def source(text: str, **fields: Any) -> dict[str, Any]:
    return file(contents={"source": text, **fields})


def config(minor: int = 4, **sections: Any) -> dict[str, Any]:
    return canonical(minor, {"ignition": {"version": f"3.{minor}.0"}, **sections})


def merged(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    result = merge(4, config(**parent), config(**child))
    assert result.pop("ignition") == {"version": "3.4.0"}
    return result


def from_2(**sections: Any) -> dict[str, Any]:
    version = sections.pop("version", "2.3.0")
    parsed = parse2(json.dumps({"ignition": {"version": version}, **sections}).encode())
    assert parsed.config is not None, parsed
    return translate(parsed.config, 4, {"var": "/var"})


def node(path: str = "/a", **fields: Any) -> dict[str, Any]:
    return {"filesystem": "root", "path": path, "mode": 420, **fields}


def test_74_only_known_versions_are_read_and_keys_match_in_any_case() -> None:
    for version in ("3.3.1", "3.3.0-experimental", "2.3.0", "1.0.0", "3.8.0"):
        assert told(version) == ["unsupported config version"]
    for text in (b"{}", b'{"ignition":{"version":"3.0"}}', b'{"ignition":{"version":""}}', b"null"):
        assert parse(text).error == "invalid config version (couldn't parse)"
    assert parse(b"").error == "not a config (empty)"
    config, report, _ = parse(b'{"Ignition":{"Version":"3.3.0"}}')
    assert config is not None and [entry.message for entry in report.entries] == ["unused key Ignition"]
    assert parse(b'{"ignition":{"version":"03.4.0"}}').error is None


@pytest.mark.parametrize("mode", ["420.0", "1e2", '"0644"', "true", "99999999999999999999"])
def test_75_a_mode_is_a_plain_decimal_integer(mode: str) -> None:
    raw = f'{{"ignition":{{"version":"3.4.0"}},"storage":{{"files":[{{"path":"/a","mode":{mode}}}]}}}}'
    config, report, error = parse(raw.encode())
    assert config is None and error == "config is not valid"
    assert report.entries[0].message.startswith("json: cannot unmarshal ")


@pytest.mark.parametrize(
    ("storage", "refused", "taken", "sentence"),
    [
        (source("gs://b/k"), "3.1.0", "3.2.0", "invalid url scheme"),
        (source("arn:aws:s3:::b/k"), "3.3.0", "3.4.0", "invalid url scheme"),
        (source("data:,", verification={"hash": SHA_256}), "3.0.0", "3.1.0", "unrecognized hash function"),
        (
            {"filesystems": [{"device": "/dev/a", "format": "none"}]},
            "3.2.0",
            "3.3.0",
            "invalid filesystem format",
        ),
    ],
)
def test_76_what_a_newer_version_takes_an_older_one_refuses(
    storage: dict[str, Any], refused: str, taken: str, sentence: str
) -> None:
    assert told(refused, storage=storage) == [sentence]
    assert told(taken, storage=storage) == []


def test_77_what_a_newer_version_refuses_an_older_one_takes() -> None:
    assert told("3.0.0", ignition={"config": {"merge": [{}]}}) == []
    assert told("3.1.0", ignition={"config": {"merge": [{}]}}) == ["source is required"]
    volume = {"name": "r", "device": "/dev/a"}
    pinned = {"luks": [volume | {"clevis": {"custom": {"pin": "foo", "config": "{}"}}}]}
    assert told("3.5.0", storage=pinned) == ["unsupported clevis pin"]
    assert told("3.6.0", storage=pinned) == []
    assert told("3.4.0", storage={"luks": [volume | {"cex": {"enabled": True}}]}) == ["unused key cex"]


def test_78_the_encoding_of_covered_contents_stays_unless_the_child_says_otherwise() -> None:
    parent = {"storage": source("data:,x", compression="gzip")}
    assert merged(parent, {"storage": source("data:,y")})["storage"] == source("data:,y", compression="gzip")
    plain = {"storage": source("data:,y", compression="")}
    assert merged(parent, plain) == plain


def test_79_a_header_without_value_takes_the_parents_away() -> None:
    def headers(**values: str | None) -> dict[str, Any]:
        listed = [{"name": name} | ({} if value is None else {"value": value}) for name, value in values.items()]
        return {"storage": source("https://h/", httpHeaders=listed)}

    assert merged(headers(A="1", B="2"), headers(A=None, C=None)) == config_of(headers(B="2", C=None))


def config_of(sections: dict[str, Any]) -> dict[str, Any]:
    made = config(**sections)
    made.pop("ignition")
    return made


def test_80_a_directory_takes_the_place_of_a_file() -> None:
    assert merged({"storage": file()}, {"storage": {"directories": [{"path": "/a"}]}}) == {
        "storage": {"directories": [{"path": "/a"}]}
    }


def test_81_kernel_arguments_move_between_the_lists() -> None:
    parent = {"shouldExist": ["a", "b", "c"], "shouldNotExist": ["x"]}
    child = {"shouldExist": ["x", "b", "n"], "shouldNotExist": ["a"]}
    wanted = {"shouldExist": ["b", "c", "x", "n"], "shouldNotExist": ["a"]}
    assert merged({"kernelArguments": parent}, {"kernelArguments": child}) == {"kernelArguments": wanted}


def test_82_keys_are_joined_and_an_owner_may_end_up_with_both() -> None:
    def users(*keys: str) -> dict[str, Any]:
        return {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": list(keys)}]}}

    assert merged(users("k1", "k2"), users("k2", "k3")) == users("k1", "k2", "k3")
    both = merged({"storage": file(user={"id": 1})}, {"storage": file(user={"name": "x"})})
    assert both == {"storage": file(user={"id": 1, "name": "x"})}


def test_83_lifting_drops_an_advertisement_at_3_5_and_mode_bits_at_3_6() -> None:
    tang = {"url": "https://t", "thumbprint": "x"}
    volume = {"device": "/dev/a", "name": "r"}

    def luks(**more: str) -> dict[str, Any]:
        return {"luks": [{"clevis": {"tang": [{**more, "thumbprint": "x", "url": "https://t"}]}, **volume}]}

    offered = {"luks": [volume | {"clevis": {"tang": [tang | {"advertisement": "{}"}]}}]}
    assert lift(config(4, storage=offered), 4, 5)["storage"] == luks()
    assert lift(config(5, storage=offered), 5, 6)["storage"] == luks(advertisement="{}")
    assert lift(config(5, storage=file(mode=0o4755)), 5, 6)["storage"] == file(mode=0o755)


def test_84_a_file_of_2_x_overwrites_unless_it_appends() -> None:
    contents = {"source": "data:,x"}
    assert from_2(storage={"files": [node(contents=contents)]})["storage"]["files"][0]["overwrite"] is True
    appended = from_2(storage={"files": [node(contents=contents, append=True)]})["storage"]["files"][0]
    assert appended == {"overwrite": False, "path": "/a", "append": [contents], "mode": 420}


def test_85_enabled_wins_over_enable() -> None:
    def unit(**fields: Any) -> Any:
        return from_2(systemd={"units": [{"name": "a.service", **fields}]})["systemd"]["units"][0].get("enabled")

    assert unit(enabled=False, enable=True) is False
    assert unit(enable=True) is True
    assert unit(enable=False) is None


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"networkd": {"units": [{"name": "a.network"}]}}, "config includes deprecated networkd section"),
        ({"storage": {"filesystems": [{"name": "x", "path": "/x"}]}}, 'Config defined filesystem "x" but no mapping'),
        ({"storage": {"files": [node()], "directories": [node()]}}, "Config has conflicting inodes"),
        (
            {"storage": {"files": [node("/foobar")], "links": [node("/foo", target="x")]}},
            "File: /foobar uses link defined in config",
        ),
    ],
)
def test_86_what_3_x_cannot_say_is_refused(sections: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TranslationError, match=sentence):
        from_2(**sections)


def test_86_a_named_filesystem_is_where_the_caller_says() -> None:
    filesystem = {"name": "var", "mount": {"device": "/dev/v", "format": "xfs"}}
    files = [node("/log/x", filesystem="var", contents={"source": "data:,"})]
    storage = from_2(storage={"filesystems": [filesystem], "files": files})["storage"]
    assert storage["files"][0]["path"] == "/var/log/x"
    assert storage["filesystems"] == [{"device": "/dev/v", "format": "xfs", "path": "/var"}]


def test_87_partitions_before_2_3_are_refused_and_undeclared_filesystems_land_on_root() -> None:
    disk = {"device": "/dev/a", "partitions": [{"label": "x", "number": 1}]}
    with pytest.raises(TranslationError, match="deprecated: size is deprecated; use sizeMB instead"):
        from_2(version="2.2.0", storage={"disks": [disk]})
    sized = {"device": "/dev/a", "partitions": [{"label": "x", "sizeMiB": 10}]}
    assert from_2(storage={"disks": [sized]})["storage"] == {"disks": [sized]}
    lost = from_2(storage={"files": [node("/x", filesystem="nowhere", contents={"source": "data:,"})]})
    assert lost["storage"]["files"][0]["path"] == "/x"


@pytest.mark.parametrize("version", ["3.6.0", "2.3.0", "2.4.0", "4.0.0"])
def test_88_the_operator_names_the_versions_that_it_reads(version: str) -> None:
    with pytest.raises(ConversionError) as refused:
        parse_and_convert(json.dumps({"ignition": {"version": version}}).encode())
    assert str(refused.value) == (
        "failed to parse Ignition config: parsing Ignition config failed: unknown version. "
        "Supported spec versions: 2.2,3.0,3.1,3.2,3.3,3.4,3.5"
    )


@pytest.mark.parametrize(
    ("asked", "served"), [("3.9.0", "3.5.0"), ("2.4.0", "2.2.0"), ("", "2.2.0"), ("3.1.0", "3.1.0")]
)
def test_89_a_client_gets_its_version_or_the_nearest(asked: str, served: str) -> None:
    assert negotiate(f"application/vnd.coreos.ignition+json;version={asked}" if asked else "*/*") == served


def unit(*dropins: str, **fields: Any) -> dict[str, Any]:
    """A dropin with a prime has contents."""
    listed = [{"name": name.rstrip("'")} | ({"contents": "new"} if "'" in name else {}) for name in dropins]
    return {"systemd": {"units": [{"name": "a", **fields, "dropins": listed}]}}


def raid(level: str, *devices: str, options: int = 1) -> dict[str, Any]:
    array = {"name": "r", "level": level, "devices": list(devices), "options": ["o"] * options}
    return {"storage": {"raid": [array]}}


def partitions(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"storage": {"disks": [{"device": "d", "partitions": list(listed)}]}}


STALE = {"compression": "gzip", "verification": {"hash": "h"}}
WORKED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "new contents keep a stale encoding and hash": (
        {"storage": file(mode=420, contents={"source": "data:,x", **STALE})},
        {"storage": source("data:,y")},
        {"storage": file(mode=420, contents={"source": "data:,y", **STALE})},
    ),
    "nodes share one namespace": (
        {"storage": {"files": [{"path": "/a"}, {"path": "/b"}], "directories": [{"path": "/d"}]}},
        {"storage": {"directories": [{"path": "/a"}], "links": [{"path": "/d"}]}},
        {"storage": {"files": [{"path": "/b"}], "directories": [{"path": "/a"}], "links": [{"path": "/d"}]}},
    ),
    "units and dropins are joined by name": (
        unit("1", "2", contents="P", enabled=True),
        unit("2'", "3", enabled=False),
        unit("1", "2'", "3", contents="P", enabled=False),
    ),
    "devices are a set and options a list": (
        raid("raid1", "1", "2"),
        raid("raid5", "2", "3"),
        raid("raid5", "1", "2", "3", options=2),
    ),
    "a number and a label name different partitions": (
        partitions({"number": 1}, {"label": "b"}, {"number": 3, "label": "c"}),
        partitions({"number": 1, "label": "z"}, {"label": "b", "sizeMiB": 9}, {"label": "c"}, {"label": "n"}),
        partitions(
            {"number": 1, "label": "z"},
            {"label": "b", "sizeMiB": 9},
            {"number": 3, "label": "c"},
            {"label": "c"},
            {"label": "n"},
        ),
    ),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_merges_of_the_reference(name: str) -> None:
    parent, child, result = WORKED[name]
    assert merged(parent, child) == config_of(result)
