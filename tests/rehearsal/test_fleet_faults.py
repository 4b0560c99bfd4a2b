"""Fleets of which a part is away, whose controllers die, whose nodes reboot, and whose durations are not known."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.rehearsal.test_fleet_whole import fleet_files

from syncline.cli.main import main
from syncline.cli.views.rehearsal.fleet import describe_fleet
from syncline.fleet.pull.order.forecasting import GOOD, Said
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.disturbing import read_faults
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.fleet.answer import FleetAnswer
from syncline.rehearsal.fleet.course import heard
from syncline.rehearsal.fleet.given import Away, parse_fleet
from syncline.rehearsal.fleet.rehearsing import FleetAsked, rehearse_fleet
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.rehearsing import Settings
from syncline.rehearsal.scenario import ScenarioError

CANARY = (
    "{name: canary, labels: {size: small, syncline.dev/cluster-wave: '0'}, durations: {pull: {from: 1s, to: 9s}}%s}"
)
LAST = "{name: last, labels: {size: small, syncline.dev/cluster-wave: '1'}, durations: {pull: {from: 1s, to: 9s}}}"
QUICK = Settings(cures=False, ranged=False)
CONFIG = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-worker, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {files: [{path: /etc/web.conf, contents: {source: "data:,on"}}]}
"""


def answered(
    folder: Path,
    canary: str = "",
    rest: str = "",
    settings: Settings = QUICK,
    faults: Schedule | None = None,
    **more: str,
) -> FleetAnswer:
    world = parse_fleet(f"clusters: [{CANARY % canary}, {LAST}]\n{rest}", Path("fleet.yaml"), Files({}))
    after = fleet_files("2").changed({path.replace("__", "/") + ".yaml": text for path, text in more.items()})
    asked = FleetAsked("web", after, world, fleet_files("1"), schedule=faults)
    return rehearse_fleet(asked, folder, settings, processes=1)


def test_what_a_cluster_says_while_it_is_away_is_heard_when_it_is_back() -> None:
    away = (Away(timedelta(seconds=60), timedelta(seconds=100)),)
    said = [Said(timedelta(seconds=after), GOOD) for after in (0, 30, 90)]

    def at(begins_s: int) -> list[float]:
        begins = timedelta(seconds=begins_s)
        return [(begins + one.after).total_seconds() for one in heard(said, begins, away)]

    assert at(0) == [0, 30, 100]
    assert at(70) == [100, 130, 190], "it gets the release when it is back"
    assert at(200) == [200, 230, 290]


@pytest.mark.parametrize(
    ("canary", "rest"), [(", away: {from: 5s, for: 10m}", ""), ("", "hub: {away: {from: 5s, for: 10m}}")]
)
def test_the_next_wave_waits_for_a_cluster_that_is_away(canary: str, rest: str, tmp_path: Path) -> None:
    first, second = answered(tmp_path / "there").waves
    assert first.ends_s is not None and first.ends_s < 120 and second.begins_s == first.ends_s
    found = answered(tmp_path / "away", canary, rest)
    first, second = found.waves
    assert found.outcome is Outcome.SAFE
    assert first.ends_s is not None and 605 <= first.ends_s < 700 and second.begins_s == first.ends_s
    assert any("do not reach one another for a while" in one for one in found.assumed)


def test_controllers_of_each_cluster_may_die_on_the_way(tmp_path: Path) -> None:
    found = answered(tmp_path, faults=read_faults("rehearsal/3; kill@2", "faults.txt"))
    assert found.outcome is Outcome.SAFE
    assert "FAULTS  rehearsal/3; kill@2" in describe_fleet(found)


def test_the_end_of_a_fleet_has_a_range(tmp_path: Path) -> None:
    found = answered(tmp_path, settings=Settings(cures=False))
    assert found.quickest_s is not None and found.slowest_s is not None and found.done_s is not None
    assert found.quickest_s < found.slowest_s and found.quickest_s <= found.done_s <= found.slowest_s


def test_a_wave_of_clusters_waits_for_nodes_that_reboot(tmp_path: Path) -> None:
    pools = ", machineConfig: true, nodes: [{name: m, roles: [master]}, {name: w, roles: [worker]}]"
    first, second = answered(tmp_path, pools, web__small__config=CONFIG).waves
    assert first.ends_s is not None and first.ends_s > 200, "a reboot takes minutes"
    assert second.begins_s == first.ends_s


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--at", "5m"), "--at: turns back one cluster; a fleet is turned back by `syncline rollout roll-back`"),
        (("--explore", "3"), "--explore: explores one cluster"),
        (("--budget", "1m"), "--explore: explores one cluster"),
        (("--path", "web"), "--path: deploys a folder to one cluster"),
        (("-n", "web"), "--namespace: is that of one folder or Application"),
        (("--revision", "a", "--revision", "b"), "two --revision: two answers are compared for one cluster"),
    ],
)
def test_what_a_fleet_does_not_take_says_why(
    arguments: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fleet.yaml").write_text(f"clusters: [{LAST}]\n")
    assert main(["rehearse", str(tmp_path), "--world", str(tmp_path / "fleet.yaml"), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{from: 1m, for: 0s}", "{from: 8d, for: 1m}", "{until: 1m}"])
def test_a_stretch_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="away"):
        parse_fleet(f"clusters: [{{name: a, away: {text}}}]", Path("fleet.yaml"), Files({}))
