"""What a captured run means: captured, or refused by task, file and line with the way out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sources.ansible.captured import KEPT, file, folder, gone, link, record, run, task

from syncline.ignition.butane.transpile import transpile
from syncline.kube.yaml.loading import load
from syncline.sources.ansible.judging import Captured, File, Folder, Unit, judge
from syncline.sources.ansible.observing import Entry, Form, Record
from syncline.sources.ansible.producing import Output, produce
from syncline.sources.ansible.reporting import State, TaskStarted

UNITS = "/etc/systemd/system"


def captured(*entries: Entry, records: tuple[Record, ...] = ()) -> Captured:
    found = judge(run(*entries, records=records))
    assert found.refusals == ()
    return found.captured


def refused(*entries: Entry, records: tuple[Record, ...] = ()) -> str:
    found = judge(run(*entries, records=records))
    assert found.refusals
    return "\n".join(map(str, found.refusals))


def test_files_keep_content_mode_and_owner_by_name() -> None:
    found = captured(file("/etc/motd", "hi\n", 0o640, user=1000, group=10), file("/etc/x", b"\xff", user=7))
    assert found.files == (File("/etc/motd", b"hi\n", 0o640, "core", "wheel"), File("/etc/x", b"\xff", 0o644, 7, 0))


def test_a_folder_is_named_only_if_a_file_does_not_bring_it() -> None:
    found = captured(
        folder("/etc/a"), file("/etc/a/b"), folder("/etc/empty"), folder("/etc/key", 0o700), file("/etc/key/k")
    )
    assert found.folders == (Folder("/etc/empty"), Folder("/etc/key", 0o700))


def test_units_dropins_enablement_and_masks_become_units() -> None:
    found = captured(
        file(f"{UNITS}/a.service", "[Service]\n"),
        link(f"{UNITS}/multi-user.target.wants/a.service", f"{UNITS}/a.service"),
        file(f"{UNITS}/sshd.service.d/10-x.conf", "[Service]\n"),
        link(f"{UNITS}/b.service", "/dev/null"),
        link(f"{UNITS}/dbus-org.c.service", "/usr/lib/systemd/system/c.service"),
        gone(f"{UNITS}/multi-user.target.wants/d.service", "link"),
        replace(gone(f"{UNITS}/f-alias.service", "link"), target="/lib/systemd/system/f.service"),
        replace(gone(f"{UNITS}/g.service", "link"), target="/dev/null"),
        records=(record("enable", unit="chronyd.service"), record("disable", unit="e.service")),
    )
    assert found.units == (
        Unit("a.service", "[Service]\n", enabled=True),
        Unit("b.service", mask=True),
        Unit("c.service", enabled=True),
        Unit("chronyd.service", enabled=True),
        Unit("d.service", enabled=False),
        Unit("e.service", enabled=False),
        Unit("f.service", enabled=False),
        Unit("g.service", mask=False),
        Unit("sshd.service", dropins=(("10-x.conf", "[Service]\n"),)),
    )


def test_caches_logs_and_lists_of_accounts_are_no_configuration() -> None:
    noise = (
        "/var/cache/x/y",
        "/var/log/a",
        "/etc/passwd-",
        "/etc/.pwd.lock",
        "/etc/a.309.2026-11-23@19:28:49~",
        "/var/roothome/.ansible/tmp",
        "/etc/subuid",
    )
    assert captured(*map(file, noise)) == Captured()


def test_folders_that_are_links_on_a_node_are_named_as_playbooks_do() -> None:
    assert captured(file("/var/opt/tool/conf")).files[0].path == "/opt/tool/conf"
    assert captured(file("/usr/local/bin/x", mode=0o755)).files[0].path == "/usr/local/bin/x"


def accounts(passwd: str = "", group: str = "", shadow: str = "") -> list[Entry]:
    return [
        file("/etc/passwd", KEPT["/etc/passwd"] + passwd),
        file("/etc/group", KEPT["/etc/group"] + group),
        file("/etc/shadow", KEPT["/etc/shadow"] + shadow),
    ]


def test_users_come_with_groups_password_and_keys() -> None:
    found = captured(
        *accounts("bob:x:1500:1500:Bob:/home/bob:/bin/bash\n", "bob:x:1500:\nops:x:1600:bob\n", "bob:$6$x:1::::::\n"),
        folder("/var/home/bob"),
        file("/var/home/bob/.bashrc"),
        file("/var/home/bob/.ssh/authorized_keys", "# ours\nssh-ed25519 AAAA bob\n"),
    )
    bob = found.users[0]
    assert (bob.name, bob.uid, bob.password, bob.groups) == ("bob", 1500, "$6$x", ("ops",))
    assert bob.keys == ("ssh-ed25519 AAAA bob",) and "$6$x" not in repr(bob)
    assert [each.name for each in found.groups] == ["ops"]


def test_the_home_of_a_new_account_comes_with_it_and_its_other_files_do_not() -> None:
    new = accounts("tool:x:999:999::/home/tool:/bin/sh\n", "tool:x:999:\n", "tool:!:1::::::\n")
    found = captured(*new, folder("/home/tool"), file("/home/tool/.bashrc"))
    assert [each.name for each in found.users] == ["tool"] and found.folders == ()
    (refused,) = judge(run(*new, file("/home/tool/x"))).refusals
    assert "it writes /home/tool/x, in the home of tool" in str(refused)


def test_keys_of_core_are_captured_for_running_nodes() -> None:
    found = captured(file("/var/home/core/.ssh/authorized_keys", "ssh-rsa B\n", 0o600))
    assert produce(found, Output.MACHINE_CONFIG, pool="worker", name="x").refusals == ()
    assert found.users[0].keys == ("ssh-rsa B",)


def test_a_restart_is_what_the_boot_does_that_brings_the_change() -> None:
    found = judge(run(file("/etc/chrony.conf"), records=(record("live", verb="restart", unit="chronyd.service"),)))
    assert not found.refusals and found.notes[0].startswith(
        "chronyd is restarted by the reboot that brings this config"
    )


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (file("/usr/bin/x"), "it writes /usr/bin/x, which is the image's or a person's; write below /etc, /var"),
        (file("/boot/x"), "it writes /boot/x"),
        (gone("/etc/motd"), "it removes /etc/motd; write an empty file, mask the unit"),
        (Entry("/etc/fifo", Form("other"), Form("")), "/etc/fifo is a device, pipe or socket; let a unit"),
        (file("/etc/x", xattrs=("security.capability",)), "/etc/x has extended attributes (security.capability)"),
        (
            file("/usr/local/bin/x", mode=0o4755),
            "/usr/local/bin/x has the special mode bits 4755",
        ),
        (file("/var/home/core/x"), "it writes /home/core/x, in the home of core; a MachineConfig carries users"),
        (
            replace(file("/etc/big"), content=None, size=9**9),
            "/etc/big has 387420489 bytes; put large files",
        ),
        (file("/etc/large", b"x" * 1_100_000), "its files have more than 1048576 bytes together, /etc/large the most"),
        (file(f"{UNITS}/a.service", mode=0o666), "is owned by another user or writable; units are root's"),
        (file(f"{UNITS}/a.service", b"\xff"), "is not text; units are UTF-8"),
    ],
    ids=lambda one: one.path if isinstance(one, Entry) else "",
)
def test_what_a_config_cannot_carry_is_refused_by_task_file_and_line(entry: Entry, sentence: str) -> None:
    found = refused(entry)
    assert found.startswith('task "Write" (site.yml:4): ') and sentence in found


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (
            record("live", verb="restart", unit="sshd.service"),
            "it restarts sshd.service and changes nothing",
        ),
        (record("live", verb="stop", unit="sshd.service"), "it stops sshd.service and changes nothing"),
        (record("live", verb="start", unit="cups.service"), "it starts cups.service and changes nothing"),
        (record("parameter", key="vm.swappiness", value="1"), "it changes vm.swappiness in the running kernel alone"),
        (record("module", name="br_netfilter", loaded=True), "name it in a file of /etc/modules-load.d, too"),
        (record("kernel", remove="quiet"), "it removes the kernel argument quiet; a MachineConfig adds"),
        (record("remove", package="vim"), "it removes the package vim of the image; build an image without it"),
        (record("unknown", command="nmcli con up x"), "it runs `nmcli con up x`, which acts on a running system"),
    ],
    ids=lambda one: one.kind if isinstance(one, Record) else "",
)
def test_what_only_a_running_system_has_is_refused(one: Record, sentence: str) -> None:
    found = refused(records=(one,))
    assert found.startswith('task "Write" (site.yml:4): ') and sentence in found


def test_live_changes_that_a_boot_repeats_are_right() -> None:
    found = captured(
        file("/etc/sysctl.d/90.conf", "vm.swappiness = 1\n"),
        file("/etc/modules-load.d/x.conf", "br_netfilter\n"),
        records=(
            record("parameter", key="vm.swappiness", value="1"),
            record("module", name="br_netfilter", loaded=True),
            record("disable", unit="cups.service"),
            record("live", verb="stop", unit="cups.service"),
            record("enable", unit="x.service"),
            record("live", verb="start", unit="x.service"),
            record("install", package="usbguard"),
            record("install", package="vim"),
            record("remove", package="vim"),
            record("kernel", add="nosmt"),
            record("kernel", add="nosmt"),
        ),
    )
    assert (found.packages, found.kernel_arguments) == (("usbguard",), ("nosmt",))


def test_changed_and_removed_accounts_are_refused() -> None:
    passwd = file("/etc/passwd", KEPT["/etc/passwd"].replace("core:x:1000:1000::/home/core", "core:x:1000:1000::/srv"))
    assert "it changes the user core; a MachineConfig adds users" in refused(passwd)
    assert "it removes the user core" in refused(file("/etc/passwd", "root:x:0:0::/root:/bin/bash\n"))


def test_what_differs_between_two_runs_is_named_with_its_task() -> None:
    first, second = run(file("/etc/stamp", "1\n")), run(file("/etc/stamp", "2\n"))
    found = judge(first, second).refusals
    assert str(found[0]).startswith('task "Write" (site.yml:4): /etc/stamp differs between two runs of the playbook; ')
    acts = [run(records=(record("kernel", add=each),)) for each in ("a=1", "a=2")]
    assert "it acts otherwise in two runs" in str(judge(*acts).refusals[0])


def test_a_play_that_fails_is_refused_with_the_way_out() -> None:
    failed = task("Fetch", 9, state=State.FAILED, message="unreachable network")
    found = judge(run(exit_code=2, results=(replace(failed, module="ansible.builtin.get_url"),)))
    assert str(found.refusals[0]).endswith(
        "a capture has no network: ship the file in the repository, or give --network"
    )
    running = TaskStarted("Sleep", "site.yml:3", "pause")
    ended = judge(run(exit_code=-9, results=(), ended="it took longer than 9 seconds", running=running))
    assert str(ended.refusals[0]).startswith(
        'the play was ended in task "Sleep" (site.yml:3): it took longer than 9 seconds (0 tasks were done); capture'
    )
    reboot = judge(run(exit_code=2, results=(replace(failed, module="reboot"),)))
    assert "the pool reboots its nodes in its order" in str(reboot.refusals[0])


def test_several_hosts_other_hosts_and_no_hosts_are_refused() -> None:
    two = judge(run(results=(task(), replace(task(), host="b"))))
    assert "tasks ran for several hosts (b, localhost); name the one to capture with --host" in str(two.refusals[0])
    other = judge(run(results=(task(delegated="lb-1"),)))
    assert "it changes another host (lb-1)" in str(other.refusals[0])
    none = judge(run(results=(), unmatched=("Web",)))
    assert 'the hosts of "Web" match no host' in str(none.refusals[0])


MUCH = captured(
    file("/etc/motd", "hi äh\n", 0o640, user=1000),
    file("/etc/bin", b"\xff\x00"),
    folder("/etc/key", 0o700),
    link("/etc/localtime", "../usr/share/zoneinfo/UTC"),
    file(f"{UNITS}/a.service", "[Service]\nExecStart=/bin/true\n"),
    link(f"{UNITS}/b.service", "/dev/null"),
    records=(record("kernel", add="nosmt"), record("install", package="usbguard"), record("enable", unit="c.service")),
)


def test_a_config_for_running_nodes_makes_links_and_folders_at_each_boot() -> None:
    found = produce(MUCH, Output.MACHINE_CONFIG, pool="infra", name="99-infra-ansible").objects[0]
    storage = found["spec"]["config"]["storage"]
    assert set(storage) == {"files"} and found["spec"]["extensions"] == ["usbguard"]
    lines = next(each for each in storage["files"] if each["path"] == "/etc/tmpfiles.d/99-infra-ansible.conf")
    assert lines["contents"]["source"] == (
        "data:,d%20/etc/key%200700%20root%20root%20-%0AL%2B%20/etc/localtime%20-%20-%20-%20-%20../usr/share/zoneinfo/UTC%0A"
    )
    first = produce(MUCH, Output.MACHINE_CONFIG, pool="infra", name="x", first_boot=True).objects[0]
    assert set(first["spec"]["config"]["storage"]) == {"directories", "files", "links"}


@pytest.mark.parametrize("first_boot", [False, True])
def test_butane_translates_to_the_same_machine_config(first_boot: bool) -> None:
    text = produce(MUCH, Output.BUTANE, pool="worker", name="x", first_boot=first_boot)
    translated = transpile(text.text.encode())
    assert translated.output, translated.report
    ours = produce(MUCH, Output.MACHINE_CONFIG, pool="worker", name="x").objects[0]["spec"]
    made = load(translated.output)
    for part in ("passwd", "systemd"):
        assert made["spec"]["config"].get(part) == ours["config"].get(part)
    for kind in ("files", "links", "directories"):
        theirs = made["spec"]["config"]["storage"].get(kind, [])
        mine = ours["config"]["storage"].get(kind, [])
        assert [(each["path"], each.get("mode"), each.get("user")) for each in theirs] == [
            (each["path"], each.get("mode"), each.get("user")) for each in mine
        ]
    assert (made["spec"]["kernelArguments"], made["spec"]["extensions"]) == (["nosmt"], ["usbguard"])


def test_an_image_gets_packages_files_and_units() -> None:
    found = captured(
        file("/etc/motd", "hi\n", 0o640, user=1000),
        records=(record("install", package="vim"), record("enable", unit="c.service")),
    )
    assert produce(found, Output.CONTAINERFILE, pool="worker", name="x").text == (
        "FROM configs AS final\n"
        "RUN dnf install -y vim && dnf clean all\n"
        "RUN echo 'aGkK' | base64 -d | install -D -m 0640 -o core -g root /dev/stdin /etc/motd\n"
        "RUN systemctl enable c.service\n"
        "RUN ostree container commit\n"
    )


def test_each_form_refuses_what_it_cannot_carry() -> None:
    found = captured(
        *accounts("bob:x:1500:1500::/home/bob:/bin/sh\n", "bob:x:1500:\n"), records=(record("install", package="vim"),)
    )
    texts = [str(each) for each in produce(found, Output.MACHINE_CONFIG, pool="worker", name="x").refusals]
    assert "the package vim comes with no extension of the OS; say --installed vim if the image has it" in texts[0]
    assert "a running node takes no user beside core, and the playbook adds bob" in texts[1]
    image = produce(found, Output.CONTAINERFILE, pool="worker", name="x").refusals
    assert [str(each) for each in image] == [
        "an image carries no user, and the playbook adds bob; capture it as a MachineConfig"
    ]
