"""Runs a module of Ansible (``AnsiballZ_NAME.py``) and keeps what Python compiles of its library for the next one.

Each module brings its whole library as an archive, from which Python compiles all over again: a third of the time of a
small task. The bytecode is kept in the throwaway root under path and hash of the source, for root alone; where it
cannot be read or written, Python compiles as ever.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
import zipimport

KEPT = "/.syncline/private/bytecode"
compile_source = zipimport._compile_source


def kept_or_compiled(path, source):
    inner = path.rpartition(".zip/")[2]
    place = f"{KEPT}/{_imp.source_hash(len(source), inner.encode() + source).hex()}"
    try:
        with open(place, "rb") as file:
            code = marshal.load(file)
        _imp._fix_co_filename(code, path)
        return code
    except (OSError, EOFError, ValueError, TypeError):
        pass
    code = compile_source(path, source)
    try:
        with open(f"{place}.{os.getpid()}", "xb") as file:
            marshal.dump(code, file)
        os.rename(f"{place}.{os.getpid()}", place)
    except OSError:
        pass
    return code


zipimport._compile_source = kept_or_compiled
del sys.argv[0]
__file__ = sys.argv[0]
sys.path[0] = os.path.dirname(os.path.realpath(__file__))
with open(__file__, "rb") as script:
    exec(compile(script.read(), __file__, "exec"))
