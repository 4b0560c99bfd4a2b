"""``python -m bench.setsonly controller …``: ``syncline`` whose GitOps controllers work on ApplicationSets alone.

As Argo CD's ApplicationSet controller is measured and compared without its Application controller.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from syncline.appset.controller import CONTROLLER
from syncline.assembly import running
from syncline.assembly.gitops import GitOps, gitops
from syncline.cli.main import main


def sets_only(*arguments: Any, **options: Any) -> GitOps:
    made = gitops(*arguments, **options)
    kept = tuple(each for each in made.role.controllers if each.name == CONTROLLER)
    return replace(made, role=replace(made.role, controllers=kept))


if __name__ == "__main__":
    vars(running)["gitops"] = sets_only
    sys.exit(main())
