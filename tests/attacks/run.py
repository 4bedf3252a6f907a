#!/usr/bin/env python3
"""Attacks a build of Longhaul in every way that once worked.

    tests/attacks/run.py BINARY [NAME...]

Each attack is one file; it holds if its function returns. The exit code is the
number of attacks that succeeded.
"""

import importlib
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from world import World  # noqa: E402


def names(wanted):
    files = (os.path.splitext(file) for file in sorted(os.listdir(HERE)))
    found = [name for name, kind in files if kind == ".py" and name not in ("run", "world")]
    return [name for name in found if not wanted or name in wanted]


def main(binary, wanted):
    failed = 0
    attacks = names(wanted)
    for name in attacks:
        world = World(os.path.abspath(binary))
        try:
            importlib.import_module(name).attack(world)
            print(f"held   {name}", flush=True)
        except Exception:
            failed += 1
            print(f"BROKEN {name}\n{traceback.format_exc()}{world.log()}", flush=True)
        finally:
            world.close()
    print(f"{len(attacks) - failed} passed, {failed} failed")
    return failed if attacks else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
