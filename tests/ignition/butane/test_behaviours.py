"""Policy sentences about Butane, numbered as the reference's behaviours (Butane 0.29)."""

from __future__ import annotations

import json
import os
import posixpath
from dataclasses import dataclass, field
from typing import Any

import pytest

from syncline.ignition.butane.files import Kind, Node
from syncline.ignition.butane.transpile import Options, Transpiled, transpile


@dataclass
class MemoryFiles:
    """A files directory in memory: path below it → content, ``(target,)`` of a link, None for what may not be read."""

    files: dict[str, bytes | tuple[str] | None] = field(default_factory=dict)
    executables: frozenset[str] = frozenset()
    directory: str = "fd"

    def absolute(self, path: str) -> str:
        return posixpath.normpath(f"/here/{path}")

    def _below(self, path: str) -> str:
        return posixpath.relpath(path, self.directory)

    def _folder(self, name: str) -> bool:
        return name == "." or any(path.startswith(f"{name}/") for path in self.files)

    def read(self, path: str) -> bytes:
        content = self.files.get(self._below(path))
        if not isinstance(content, bytes):
            raise FileNotFoundError(2, os.strerror(2))
        return content

    def stat(self, path: str) -> Node:
        return self.lstat(path)

    def lstat(self, path: str) -> Node:
        name = self._below(path)
        if self._folder(name):
            return Node(Kind.DIRECTORY)
        if name not in self.files:
            raise FileNotFoundError(2, os.strerror(2))
        content = self.files[name]
        if isinstance(content, tuple):
            return Node(Kind.LINK)
        return Node(Kind.OTHER if content is None else Kind.FILE, name in self.executables)

    def names(self, path: str) -> list[str]:
        prefix = "" if self._below(path) == "." else f"{self._below(path)}/"
        return list({name[len(prefix) :].split("/")[0] for name in self.files if name.startswith(prefix)})

    def target(self, path: str) -> str:
        content = self.files[self._below(path)]
        assert isinstance(content, tuple)
        return content[0]


def run(body: str, head: str = "fcos 1.5.0", files: MemoryFiles | None = None, **options: bool) -> Transpiled:
    variant, version = head.split()
    text = f"variant: {variant}\nversion: {version}\n{body}"
    return transpile(text.encode("utf-8", "surrogatepass"), Options(files=files, **options))


def ignition(body: str, head: str = "fcos 1.5.0", files: MemoryFiles | None = None) -> dict[str, Any]:
    """The config without its version; the document must be accepted without any report."""
    done = run(body, head, files)
    assert (str(done.report), done.error) == ("", None)
    assert done.output is not None
    config: dict[str, Any] = json.loads(done.output)
    del config["ignition"]["version"]
    return config if config["ignition"] else {key: value for key, value in config.items() if key != "ignition"}


def told(body: str, head: str = "fcos 1.5.0", files: MemoryFiles | None = None, **options: bool) -> list[str]:
    return str(run(body, head, files, **options).report).splitlines()


def contents(inline: str, head: str = "fcos 1.5.0") -> dict[str, Any]:
    file = ignition(f"storage: {{files: [{{path: /a, contents: {{inline: {json.dumps(inline)}}}}}]}}", head)
    found: dict[str, Any] = file["storage"]["files"][0]["contents"]
    return found


OPENSHIFT = "metadata: {name: n, labels: {machineconfiguration.openshift.io/role: worker}}\n"


# -- the header ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("version: 1.5.0", "error parsing variant; must be specified"),
        ("variant: fcos\nversion: 1.5", "error parsing version; must be a valid semver"),
        ("variant: fcos\nversion: 1.9.0", "No translator exists for variant fcos with version 1.9.0"),
        ("variant: FCOS\nversion: 1.5.0", "No translator exists for variant FCOS with version 1.5.0"),
        (
            "variant: rhcos\nversion: 0.1.0",
            "rhcos variant has been removed; use openshift variant instead: "
            "https://coreos.github.io/butane/upgrading-openshift/",
        ),
    ],
)
def test_variant_and_version_choose_the_translator_b002_b003_b004(text: str, error: str) -> None:
    assert transpile(text.encode()).error == error


def test_a_header_alone_is_a_config_b001() -> None:
    assert run("").output == b'{"ignition":{"version":"3.4.0"}}'


def test_versions_are_compared_by_value_b003() -> None:
    assert run("", "fcos 01.05.0").output == b'{"ignition":{"version":"3.4.0"}}'


def test_an_unknown_key_is_a_warning_at_the_key_b006() -> None:
    assert told("foo: bar") == ["warning at $.foo, line 3 col 1: unused key foo"]


def test_pretty_output_has_two_spaces_and_the_order_of_the_specification_b008() -> None:
    done = run("storage: {files: [{mode: 0644, path: /a, contents: {inline: hi}}]}", pretty=True)
    assert done.output is not None
    lines = [line.strip().split(":")[0] for line in done.output.decode().splitlines()]
    assert [line for line in lines if line in ('"path"', '"contents"', '"mode"')] == ['"path"', '"contents"', '"mode"']
    assert done.output.startswith(b'{\n  "ignition": {\n    "version"')


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inline", "source", "compression"),
    [
        ("hello world <&>", "data:,hello%20world%20%3C%26%3E", ""),
        ("", "data:,", ""),
        ("éé", "data:,%C3%A9%C3%A9", ""),
        ("ééé", "data:;base64,w6nDqcOp", ""),
        ("a" * 47, "data:," + "a" * 47, ""),
        ("a" * 48, "data:;base64,H4sIAAAAAAAC/0okEQACAAD//1YrOKAwAAAA", "gzip"),
        ("é" * 40, "data:;base64,H4sIAAAAAAAC/zq8kroQEAAA///OEzpTUAAAAA==", "gzip"),
    ],
)
def test_the_shortest_encoding_is_chosen_b009_b010_b011(inline: str, source: str, compression: str) -> None:
    assert contents(inline) == {"source": source, "compression": compression}


def test_the_first_version_only_escapes_b012() -> None:
    assert contents("a" * 48, "fcos 1.0.0") == {"source": "data:," + "a" * 48}


def test_what_the_user_compressed_is_not_compressed_again_b013() -> None:
    found = ignition("storage: {files: [{path: /a, contents: {compression: gzip, inline: " + "x" * 60 + "}}]}")
    assert found["storage"]["files"][0]["contents"] == {"compression": "gzip", "source": "data:," + "x" * 60}


@pytest.mark.parametrize(
    ("version", "source"), [("4.8.0", "data:,zzz"), ("4.9.0", "data:,zzz"), ("4.10.0", "data:;base64,H4sI")]
)
def test_old_machine_config_daemons_get_no_compression_b014(version: str, source: str) -> None:
    text = f"{OPENSHIFT}storage: {{files: [{{path: /a, contents: {{inline: {'z' * 200}}}}}]}}"
    done = run(text, f"openshift {version}")
    assert done.value is not None
    assert done.value["spec"]["config"]["storage"]["files"][0]["contents"]["source"].startswith(source)


@pytest.mark.parametrize(("head", "field"), [("fcos 1.5.0", "source"), ("fcos 1.0.0", "inline")])
def test_two_sources_are_refused_at_the_last_one_b015(head: str, field: str) -> None:
    (line,) = told("storage: {files: [{path: /a, contents: {inline: a, source: 'data:,'}}]}", head)
    assert line.startswith(f"error at $.storage.files.0.contents.{field}, line 3 col ")
    assert line.endswith(": only one of the following can be set: inline, local, source")


LOCAL = "storage: {files: [{path: /a, contents: {local: %s}}]}"


def test_local_files_need_a_directory_and_stay_in_it_b016_b017() -> None:
    assert told(LOCAL % "hi")[0].endswith("must be specified with -d/--files-dir")
    assert told(LOCAL % "../hi", files=MemoryFiles())[0].endswith("traverses outside the files directory")
    assert told(LOCAL % "hi", files=MemoryFiles())[0].endswith(": open fd/hi: no such file or directory")
    found = ignition(LOCAL % "/tree/a", files=MemoryFiles({"tree/a": b"x"}))
    assert found["storage"]["files"][0]["contents"]["source"] == "data:,x"


def test_the_first_version_knows_no_local_files_b018() -> None:
    done = run(LOCAL % "a", "fcos 1.0.0")
    assert [line.split(": ", 1)[1] for line in str(done.report).splitlines()] == ["unused key local"]
    assert done.value is not None
    assert done.value["storage"] == {"files": [{"path": "/a"}]}


# -- reading YAML ----------------------------------------------------------------------------------------------------

MODE = "storage: {files: [{path: /a, mode: %s}]}"


@pytest.mark.parametrize("mode", ["0644", "0o644", "0x1a4", "0b110100100", "4_2_0", "420", "420.0", "420.5"])
def test_integers_are_read_as_go_yaml_reads_them_b019_b020(mode: str) -> None:
    assert ignition(MODE % mode)["storage"]["files"][0]["mode"] == 420


def test_quoted_numbers_are_text_b020() -> None:
    assert run(MODE % '"0644"').error == "yaml: unmarshal errors:\n  line 3: cannot unmarshal !!str `0644` into int"


def test_decimal_modes_are_told_b021() -> None:
    assert [line.split(": ", 1)[1].split(";")[0] for line in told(MODE % "644")] == [
        "unreasonable mode would be reasonable if specified in octal",
        "setuid/setgid/sticky bits are not supported or functional in spec versions older than 3.6.0",
    ]
    assert told(MODE % "010000")[0].endswith("illegal file mode")


def test_special_bits_are_fine_from_36_on_b022() -> None:
    assert len(told(MODE % "04755", "fcos 1.6.0")) == 1
    assert ignition(MODE % "04755", "fcos 1.7.0")["storage"]["files"][0]["mode"] == 2541


@pytest.mark.parametrize(
    ("text", "value"), [("yes", True), ('"yes"', True), ("off", False), ("N", False), ("TRUE", True)]
)
def test_booleans_of_yaml_11_count_where_a_boolean_is_wanted_b023(text: str, value: bool) -> None:
    assert (
        ignition(f"systemd: {{units: [{{name: a.service, enabled: {text}}}]}}")["systemd"]["units"][0]["enabled"]
        is value
    )


def test_a_quoted_true_is_no_boolean_b023() -> None:
    assert run('systemd: {units: [{name: a.service, enabled: "true"}]}').output is None


def test_other_scalars_are_text_where_text_is_wanted_b024_b025() -> None:
    (user,) = ignition("passwd: {users: [{name: 123, gecos: 1.10, shell: true, home_dir: !!binary aGVsbG8=}]}")[
        "passwd"
    ]["users"]
    assert user == {"gecos": "1.10", "homeDir": "hello", "name": "123", "shell": "true"}


def test_aliases_and_merge_keys_work_and_are_mentioned_b026() -> None:
    alias = "storage: {files: [{path: /a, contents: &c {inline: x}}, {path: /b, contents: *c}]}"
    (line,) = told(alias)
    assert line.startswith("warning at $.storage.files.1.contents, line 3 col ")
    assert "context tree does not match content tree" in line
    merge = "storage: {files: [&f {path: /a, mode: 0600}, {<<: *f, path: /b}]}"
    assert told(merge)[0].endswith("unused key <<")
    done = run(merge)
    assert done.value is not None
    assert [file["mode"] for file in done.value["storage"]["files"]] == [384, 384]


def test_repeated_keys_are_errors_and_later_documents_are_not_read_b027() -> None:
    done = run("storage:\n  files: []\n  files: []\n")
    assert done.error == 'yaml: unmarshal errors:\n  line 5: mapping key "files" already defined at line 4'
    assert run("---\n{{{").error is None


@pytest.mark.parametrize(
    ("flow", "groups"), [("[a:, b]", ["a:", "b"]), ("[a:]", ["a:"]), ("[a:b:, 'c:', d::]", ["a:b:", "c:", "d::"])]
)
def test_colons_before_commas_and_brackets_are_text(flow: str, groups: list[str]) -> None:
    assert ignition(f"passwd: {{users: [{{name: u, groups: {flow}}}]}}")["passwd"]["users"][0]["groups"] == groups


def test_nulls_are_absent_b028() -> None:
    (line,) = told("passwd:")
    assert "context tree does not match content tree at $.passwd" in line
    assert ignition("storage: {files: [null, {path: /a}]}".replace("null, ", ""))["storage"] == {
        "files": [{"path": "/a"}]
    }
    done = run("storage: {files: [{path: /a}, null]}")
    assert done.value is not None
    assert done.value["storage"] == {"files": [{"path": "/a"}]}


# -- output ----------------------------------------------------------------------------------------------------------


def test_json_escapes_as_go_does_b029() -> None:
    done = run('systemd: {units: [{name: a.service, contents: "[U]\\nA=<b>&\\u2028"}]}')
    assert done.output is not None
    assert b"[U]\\nA=\\u003cb\\u003e\\u0026\\u2028" in done.output


def test_keys_come_in_the_order_of_the_specification_b030_b031() -> None:
    done = run(
        "passwd: {users: [{uid: 1, shell: s, system: true, should_exist: true, ssh_authorized_keys: [k], "
        "primary_group: p, name: n, groups: [g], gecos: c, home_dir: h, no_create_home: true, no_log_init: true, "
        "no_user_group: true, password_hash: x}]}\n"
        "storage: {files: [{mode: 0644, contents: {source: 'data:,'}, append: [{source: 'data:,'}], user: {id: 1}, "
        "path: /a, overwrite: true, group: {id: 1}}]}"
    )
    assert done.output is not None
    config = json.loads(done.output)
    assert " ".join(config["passwd"]["users"][0]) == (
        "gecos groups homeDir name noCreateHome noLogInit noUserGroup passwordHash primaryGroup sshAuthorizedKeys "
        "shell shouldExist system uid"
    )
    assert " ".join(config["storage"]["files"][0]) == "group overwrite path user append contents mode"


def test_zero_values_that_mean_something_are_kept_b032() -> None:
    found = ignition(
        "storage: {files: [{path: /a, mode: 0, user: {id: 0}}], disks: [{device: /dev/a, wipe_table: false, "
        "partitions: [{label: '', number: 0}]}], raid: [{name: r, level: raid1, devices: [/dev/a], options: []}]}"
    )["storage"]
    assert found["files"] == [{"mode": 0, "path": "/a", "user": {"id": 0}}]
    assert found["disks"] == [{"device": "/dev/a", "partitions": [{"label": ""}], "wipeTable": False}]
    assert "options" not in found["raid"][0]


# -- judging the result ----------------------------------------------------------------------------------------------


def test_problems_of_the_result_point_into_the_document_b033_b034() -> None:
    done = run("storage:\n  files:\n    - path: a")
    assert str(done.report) == "error at $.storage.files.0.path, line 5 col 13: path not absolute\n"
    assert done.error == "config generated was invalid"
    assert told("storage: {files: [{path: /a}, {path: /a}]}")[0].startswith("error at $.storage.files.1, ")
    assert told("storage: {files: [{path: /a}], directories: [{path: /a}]}")[0].startswith(
        "error at $.storage.files.0, "
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("storage: {files: [{path: /a, overwrite: true}]}", "overwrite must be false if source is unspecified"),
        (
            "storage: {files: [{path: /a, contents: {inline: x, verification: {hash: md5-x}}}]}",
            "unrecognized hash function",
        ),
        ("ignition: {config: {merge: [{inline: '{}'}]}}", "invalid config version (couldn't parse)"),
        ("kernel_arguments: {should_exist: [a], should_not_exist: [a]}", "duplicate entry defined"),
        (
            "systemd: {units: [{name: a.service, contents: x, contents_local: y}]}",
            "can be set: contents, contents_local",
        ),
    ],
)
def test_refusals_b035_b036_b037_b038_b052(body: str, message: str) -> None:
    done = run(body)
    assert done.output is None
    assert message in str(done.report)


def test_an_embedded_config_of_another_version_is_not_judged_b037() -> None:
    (line,) = told("""ignition: {config: {merge: [{inline: '{"ignition":{"version":"3.2.0"}}'}]}}""")
    assert line.startswith("warning at $.ignition.config.merge.0.version, ")


def test_units_that_will_not_start_are_told_and_files_below_them_are_refused_b053() -> None:
    unit = """systemd: {units: [{name: a.service, enabled: true, contents: "[Service]\\nType=oneshot"}]}"""
    assert told(unit) == [
        "warning at $.systemd.units.0.contents, line 3 col 62: "
        'unit "a.service" is enabled, but has no install section so enable does nothing'
    ]
    assert run(unit).output is not None
    taken = unit.replace("enabled: true, ", "") + "\nstorage: {files: [{path: /etc/systemd/system/a.service}]}"
    assert told(taken) == ["error at $.storage.files.0.path, line 4 col 26: path conflicts with systemd unit or dropin"]


# -- mount units -----------------------------------------------------------------------------------------------------


def units(body: str, head: str = "fcos 1.5.0") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ignition(body, head)["systemd"]["units"]
    return found


MOUNT = "storage: {filesystems: [{device: %s, path: %s, format: %s, with_mount_unit: true}]}"


def test_a_mount_unit_is_named_and_written_as_systemd_wants_it_b039_b040() -> None:
    (unit,) = units(MOUNT % ("/dev/disk/by-partlabel/var-log", "/var/log", "ext4"))
    assert unit["name"] == "var-log.mount"
    assert "Requires=systemd-fsck@dev-disk-by\\x2dpartlabel-var\\x2dlog.service\n" in unit["contents"]
    assert unit["contents"].endswith("\n[Install]\nRequiredBy=local-fs.target")
    assert units(MOUNT % ("/dev/a", "/", "ext4"))[0]["name"] == "-.mount"


def test_swap_has_units_of_its_own_from_base_4_on_b040_b041() -> None:
    swap = "storage: {filesystems: [{device: '/dev/disk/by-label/my swap-1', format: swap, with_mount_unit: true}]}"
    (unit,) = units(swap)
    assert unit["name"] == "dev-disk-by\\x2dlabel-my\\x20swap\\x2d1.swap"
    assert "[Swap]\nWhat=/dev/disk/by-label/my swap-1\n" in unit["contents"]
    assert told(swap, "fcos 1.3.0")[0].endswith("path is required if with_mount_unit is true and format is not swap")
    assert "Type=swap" in units(MOUNT % ("/dev/a", "/s", "swap"), "fcos 1.1.0")[0]["contents"]


def test_a_volume_that_a_server_opens_is_mounted_after_the_network_b042() -> None:
    luks = "luks: [{name: data, device: /dev/a, clevis: {tang: [{url: 'http://t', thumbprint: x}]}}]"
    (unit,) = units((MOUNT % ("/dev/mapper/data", "/d", "xfs")).replace("{filesystems", "{" + luks + ", filesystems"))
    assert "\nOptions=_netdev\n" in unit["contents"]
    assert unit["contents"].endswith("RequiredBy=remote-fs.target")


def test_what_the_user_wrote_lies_over_what_is_generated_b043() -> None:
    body = (
        MOUNT % ("/dev/a", "/var/x", "ext4")
    ) + "\nsystemd: {units: [{name: z.service}, {name: var-x.mount, enabled: false}]}"
    found = units(body)
    assert [unit["name"] for unit in found] == ["var-x.mount", "z.service"]
    assert found[0]["enabled"] is False
    assert "Where=/var/x" in found[0]["contents"]


def test_mount_points_are_limited_from_16_on_but_not_for_openshift_b044() -> None:
    body = MOUNT % ("/dev/a", "/opt", "ext4")
    assert told(body, "fcos 1.6.0")[0].endswith("path must be under /etc or /var if with_mount_unit is true")
    assert run(OPENSHIFT + body, "openshift 4.19.0").error is None


# -- trees, keys -----------------------------------------------------------------------------------------------------

TREE = MemoryFiles(
    {"t/B": b"b", "t/a": b"a", "t/sub/x.sh": b"s", "t/l2": ("/abs",)}, executables=frozenset({"t/sub/x.sh"})
)


def test_a_tree_is_walked_in_byte_order_b045() -> None:
    found = ignition("storage: {trees: [{local: t}]}", files=TREE)["storage"]
    assert [(file["path"], file["mode"]) for file in found["files"]] == [("/B", 420), ("/a", 420), ("/sub/x.sh", 493)]
    assert found["links"] == [{"path": "/l2", "target": "/abs"}]


def test_a_tree_fills_empty_entries_and_refuses_others_b046_b047() -> None:
    body = "storage: {files: [{path: /a, mode: 0600, user: {name: u}}], trees: [{local: t}]}"
    file = ignition(body, files=TREE)["storage"]["files"][0]
    assert (file["mode"], file["user"], file["contents"]["source"]) == (384, {"name": "u"}, "data:,a")
    for other in ("files: [{path: /a, contents: {inline: x}}]", "directories: [{path: /a}]"):
        lines = told(f"storage: {{{other}, trees: [{{local: t}}]}}", files=TREE)
        assert lines[0].endswith("matching filesystem node has existing contents or different type")


def test_an_owner_brings_directories_along_b048() -> None:
    found = ignition("storage: {trees: [{local: t, user: {name: u}}]}", "fcos 1.7.0", TREE)["storage"]
    assert [(one["path"], one["mode"]) for one in found["directories"]] == [("/", 493), ("/sub", 493)]
    two = "storage: {trees: [{local: t, user: {name: u}}, {local: t, path: /, user: {name: u}}]}"
    assert told(two, "fcos 1.7.0", TREE)[0].startswith("error at $.storage.trees.1, ")


def test_other_things_in_a_tree_are_refused_b049() -> None:
    lines = told("storage: {trees: [{local: t}]}", files=MemoryFiles({"t/fifo": None}))
    assert lines[0].endswith("trees may only contain files, directories, and symlinks")


def test_keys_from_files_follow_written_ones_b050_b051() -> None:
    keys = MemoryFiles({"k": b"k1\n\nk2\r\n#c\n"})
    body = "passwd: {users: [{name: core, ssh_authorized_keys: [%s], ssh_authorized_keys_local: [k]}]}"
    assert ignition(body % "first", files=keys)["passwd"]["users"][0]["sshAuthorizedKeys"] == [
        "first",
        "k1",
        "k2",
        "#c",
    ]
    (line,) = told(body % "k1", files=keys)
    assert line.startswith("error at $.passwd.users.0.ssh_authorized_keys_local.0, ")


# -- boot device, grub, disks ----------------------------------------------------------------------------------------

MIRROR = "boot_device: {%smirror: {devices: [/dev/a, /dev/b]}}"


def test_a_mirror_repeats_the_partitions_of_the_image_b054() -> None:
    found = ignition(MIRROR % "layout: x86_64, ")["storage"]
    assert [len(disk["partitions"]) for disk in found["disks"]] == [4, 4]
    assert [one["label"] for one in found["filesystems"]] == ["esp-1", "esp-2", "boot", "root"]
    assert [raid.get("options") for raid in found["raid"]] == [["--metadata=1.0"], None]
    power = ignition(MIRROR % "layout: ppc64le, ")["storage"]
    assert [(one["label"], one.get("sizeMiB")) for one in power["disks"][0]["partitions"]] == [
        ("prep-1", 4),
        ("reserved-1", 1),
        ("boot-1", 384),
        ("root-1", None),
    ]
    assert [one["label"] for one in power["filesystems"]] == ["boot", "root"]


def test_one_device_is_no_mirror_and_told_twice_b055() -> None:
    lines = told("boot_device: {layout: x86_64, mirror: {devices: [/dev/a]}}")
    assert len(lines) == 2
    assert lines[0] == lines[1]


def test_the_layout_of_a_mirror_is_wanted_then_demanded_b056() -> None:
    assert told(MIRROR % "", "fcos 1.5.0")[0].startswith("warning")
    assert told(MIRROR % "", "fcos 1.7.0")[0].startswith("error")


def test_an_encrypted_root_b057_b058_b060() -> None:
    found = ignition("boot_device: {luks: {tpm2: true}}")["storage"]
    assert (found["luks"][0]["device"], found["filesystems"][0]["device"]) == (
        "/dev/disk/by-partlabel/root",
        "/dev/mapper/root",
    )
    assert ignition("boot_device: {luks: {threshold: 2}}") == {}
    cex = "boot_device: {layout: s390x-eckd, luks: {device: /dev/dasda, cex: {enabled: true}}}"
    assert ignition(cex, "fcos 1.6.0")["storage"]["luks"][0]["device"] == "/dev/dasda2"
    assert told("boot_device: {luks: {device: /dev/a}}", "fcos 1.7.0")[0].startswith(
        "error at $.boot_device.luks.luks, "
    )


def test_a_users_disk_lies_over_the_mirrors_b059() -> None:
    body = (MIRROR % "layout: x86_64, ") + (
        "\nstorage: {disks: [{device: /dev/a, partitions: [{label: root-1, size_mib: 10240}, {label: var-1}]}]}"
    )
    disk = ignition(body)["storage"]["disks"][0]
    assert [(one["label"], one.get("sizeMiB")) for one in disk["partitions"]][-2:] == [
        ("root-1", 10240),
        ("var-1", None),
    ]


def test_passwords_of_the_boot_loader_b061() -> None:
    body = "grub: {users: [{name: root, password_hash: x}, {name: b, password_hash: y}]}"
    (file,) = ignition(body)["storage"]["files"]
    assert "set%20superusers%3D%22root%20b%22" in file["append"][0]["source"]
    assert told(OPENSHIFT + body, "openshift 4.14.0") == [
        "error at $.grub.users, line 4 col 15: appending to files is not supported in this spec version"
    ]
    done = run(OPENSHIFT + body, "openshift 4.23.0-experimental")
    assert done.value is not None
    assert "contents" in done.value["spec"]["config"]["storage"]["files"][0]


DISK = "storage: {disks: [{device: %s, partitions: [{label: %s, number: %d, size_mib: %d}]}]}"


@pytest.mark.parametrize(
    ("disk", "label", "number", "size", "place"),
    [
        ("/dev/vda", "data", 0, 9000, "number"),
        ("/dev/disk/by-id/coreos-boot-disk", "data", 0, 9000, ""),
        ("/dev/vda", "root", 4, 4096, "size_mib"),
        ("/dev/vda", "boot", 1, 9000, "label"),
    ],
)
def test_partitions_that_will_surprise_are_told_b062(disk: str, label: str, number: int, size: int, place: str) -> None:
    lines = told(DISK % (disk, label, number, size), "fcos 1.6.0")
    assert [line.split(",")[0].rsplit(".", 1)[1] for line in lines] == ([place] if place else [])


# -- variants --------------------------------------------------------------------------------------------------------


def test_flatcar_has_no_clevis_and_no_boot_device_b063() -> None:
    luks = "storage: {luks: [{name: a, device: /dev/a, clevis: {tpm2: true}}]}"
    assert told(luks, "flatcar 1.1.0")[0].endswith("clevis is not supported in this spec version")
    assert told("boot_device: {}", "flatcar 1.1.0")[0].endswith("unused key boot_device")


def test_edge_devices_refuse_five_sections_b064() -> None:
    body = (
        "kernel_arguments: {should_exist: [a]}\nstorage: {disks: [{device: /dev/a}], filesystems: [{device: /dev/a}], "
        "luks: [{name: a, device: /dev/a}], raid: [{name: r}]}"
    )
    places = [line.split(",")[0].removeprefix("error at $.") for line in told(body, "r4e 1.0.0")]
    assert places == ["kernel_arguments", *(f"storage.{name}" for name in ("disks", "filesystems", "luks", "raid"))]


def test_quadlets_b065() -> None:
    found = ignition("systemd: {quadlets: [{name: b@1.container}]}", "fcos 1.8.0-experimental")["storage"]
    assert found["links"] == [{"path": "/etc/containers/systemd/users/b@1.container", "target": "b@.container"}]
    assert "unsupported file extension" in told("systemd: {quadlets: [{name: c.bad}]}", "fcos 1.8.0-experimental")[0]


# -- openshift -------------------------------------------------------------------------------------------------------


def machine_config(body: str, version: str = "4.16.0", labels: str = "") -> str:
    head = OPENSHIFT.replace("worker}}", f"worker{labels}}}}}")
    done = run(head + body, f"openshift {version}")
    assert done.output is not None, done.report
    return done.output.decode()


def test_a_machine_config_b066() -> None:
    assert machine_config("") == (
        "# Generated by Butane; do not edit\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n"
        'metadata:\n  labels:\n    machineconfiguration.openshift.io/role: worker\n  name: "n"\n'
        "spec:\n  config:\n    ignition:\n      version: 3.4.0"
    )
    for raw in (False, True):
        assert len(told("", "openshift 4.16.0", raw=raw)) == 2


def test_raw_output_leaves_out_what_only_machine_configs_have_b067() -> None:
    (line,) = told(OPENSHIFT + "openshift: {fips: true}", "openshift 4.16.0", raw=True)
    assert line == "warning at $.openshift.fips, line 4 col 19: field ignored in raw mode"


def test_large_numbers_are_written_as_upstream_writes_them_b068() -> None:
    disk = "storage: {disks: [{device: /dev/a, partitions: [{label: a, number: 1, size_mib: %d}]}]}"
    assert "sizeMiB: 1e+06" in machine_config(disk % 1_000_000)
    assert "sizeMiB: 999999" in machine_config(disk % 999_999)


def test_fips_chooses_a_cipher_up_to_419_b069() -> None:
    luks = "openshift: {fips: true}\nstorage: {luks: [{name: a, device: /dev/a%s}]}"
    assert "- --cipher\n            - aes-cbc-essiv:sha256" in machine_config(luks % "", "4.19.0")
    assert "cipher" not in machine_config(luks % "", "4.20.0")
    assert machine_config(luks % ", options: [-c, x]", "4.19.0").count("cipher") == 0


def test_yaml_keys_and_texts_b070_b071() -> None:
    text = machine_config("", labels=", '1': 'true', a10: 'a: b', a2: ''")
    assert '    "1": "true"\n    a2: ""\n    a10: \'a: b\'\n' in text
    unit = "systemd: {units: [{name: a.service, contents: %s}]}"
    assert "- contents: |\n            [U]\n" in machine_config(unit % r'"[U]\nA=b\n"')
    assert 'contents: "[U] \\nA=b"' in machine_config(unit % r'"[U] \nA=b"')


def test_what_openshift_refuses_b072() -> None:
    user = OPENSHIFT + "passwd: {users: [{name: core, password_hash: x}]}"
    assert told(user, "openshift 4.12.0")[0].startswith("error at $.passwd.users.0.password_hash, ")
    assert told(user, "openshift 4.13.0") == []
    several = OPENSHIFT + (
        "passwd: {users: [{name: bob}], groups: [{name: g}]}\n"
        "storage: {files: [{path: /a, mode: 01755, contents: {source: 'http://x'}}], links: [{path: /l, target: t}]}"
    )
    assert [line.split(",")[0] for line in told(several, "openshift 4.16.0")] == [
        "error at $.storage.files.0.contents.source",
        "error at $.storage.files.0.mode",
        "error at $.passwd.users.0.name",
    ]


def test_places_that_are_lost_upstream_are_lost_here_b073() -> None:
    body = OPENSHIFT + "storage:\n  filesystems:\n    - foo: x"
    assert "error at $.spec.config.storage.filesystems.0.device, line 1 col 1: path not specified" in told(
        body, "openshift 4.16.0"
    )
    assert "error at $.storage.filesystems.0.device, line 6 col 7: path not specified" in told(
        body, "openshift 4.16.0", raw=True
    )


def test_a_quoted_value_is_cut_by_bytes_as_upstream_cuts_it() -> None:
    done = run("storage: {files: [{path: /a, mode: aaaaaaéééé}]}")
    assert done.error is not None
    assert "cannot unmarshal !!str `aaaaaa\udcc3...` into int" in done.error
