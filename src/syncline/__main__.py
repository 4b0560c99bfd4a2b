"""``python -m syncline``: the command ``syncline``."""

import sys

from syncline.cli.main import main

sys.exit(main())
