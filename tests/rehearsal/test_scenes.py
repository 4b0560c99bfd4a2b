"""Repositories that people have, unchanged, rehearsed: what goes wrong with them is found, and a cure is proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.scenes.scenes import scene

from syncline.rehearsal.answer.answer import Doing, Outcome
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.given.world import default_world, parse_world
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.rehearsing import Settings, rehearse

QUICK = Settings(ranged=False)
OKD = """\
machineConfig: true
nodes:
- name: okd-master
  count: 3
  roles: [master]
  taints: ["node-role.kubernetes.io/master:NoSchedule"]
- name: okd-worker
  count: 1
  roles: [worker]
"""


def test_pool_pause_waits_for_an_account_that_comes_later_and_bringing_it_first_cures_it(tmp_path: Path) -> None:
    files = read_files(scene("pool-pause"))
    world = parse_world(
        "machineConfig: true\nnodes: [{name: worker, roles: [worker]}]\n", Path("world.yaml"), Files({})
    )
    answer = rehearse(Asked("pool-pause", files, world), tmp_path, QUICK)
    assert answer.outcome is Outcome.BLOCKED
    assert "ServiceAccount openshift-gitops/sync-job-sa Missing" in answer.headline
    (cure,) = (cure for cure in answer.cures if cure.proved)
    assert cure.text.startswith("bring ServiceAccount sync-job-sa with its rights into PreSync, wave -1")
    assert cure.diff.count("+    argocd.argoproj.io/hook: PreSync") == 3


def test_machine_config_cannot_drain_the_only_worker_and_a_second_one_cures_it(tmp_path: Path) -> None:
    folder = scene("machine-config")
    before = Files({"cluster.yaml": (folder / "cluster.yaml").read_bytes()})
    files = read_files(folder / "99_kubeinit_extra_config_worker.yaml")
    world = parse_world(OKD, Path("world.yaml"), before)
    answer = rehearse(Asked("machine-config", files, world), tmp_path, QUICK)
    assert answer.outcome is Outcome.BLOCKED
    assert "drain not begun" in answer.headline and "budget router-default" in answer.headline
    proved = [cure.text for cure in answer.cures if cure.proved]
    assert proved[0] == "run 2 okd-worker nodes instead of 1", "the budget takes the router down, so it comes later"
    assert not answer.cures[0].outages and any(each.least == 0 for each in answer.cures[1].outages)


def test_jobs_change_an_immutable_template_where_the_hook_is_lost_and_replacing_it_cures_it(tmp_path: Path) -> None:
    before = read_files(scene("jobs"))
    job = before.text("job-with-pod/job.yaml").replace("job-test", "second")
    plain = "".join(
        line for line in job.splitlines(keepends=True) if "argocd" not in line and "annotations" not in line
    )
    asked = Asked("jobs", before.changed({"job-with-pod/job.yaml": plain}), default_world(before))
    earlier = plain.replace("second", "first")
    asked = replace(asked, before=before.changed({"job-with-pod/job.yaml": earlier}))
    answer = rehearse(asked, tmp_path, QUICK)
    assert answer.outcome is Outcome.FAILED and "immutable" in answer.headline
    assert [cure.outcome for cure in answer.cures] == [Outcome.SAFE]


def test_jobs_as_they_are_end_with_their_hook_run_once(tmp_path: Path) -> None:
    files = read_files(scene("jobs"))
    answer = rehearse(Asked("jobs", files, default_world(files)), tmp_path, QUICK)
    assert answer.outcome is Outcome.SAFE
    assert [bar.row for bar in answer.bars if bar.doing is Doing.HOOK] == ["app/test-job hook Job/test-job"]
