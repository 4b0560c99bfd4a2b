"""The throwaway root as a program: ``python -I -S <this file>``."""

import os
import sys

if not __package__:  # run by path and isolated: only this project's source can be imported
    sys.path.insert(0, os.path.abspath(__file__).rsplit(os.sep, 4)[0])

from syncline.assembly.playbooks.throwaway import main

if __name__ == "__main__":
    sys.exit(main())
