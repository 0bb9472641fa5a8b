"""`python -m tests.digests [--write] [--long] [--only TEXT]`: what moved; with `--write`, keep what is computed now."""

from __future__ import annotations

import argparse
import sys
import time

from tests.digests.catalogue import catalogue, long
from tests.digests.digest import same
from tests.digests.store import read, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.digests", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what is computed now")
    parser.add_argument("--long", action="store_true", help="the long form")
    parser.add_argument("--only", default="", help="digests whose name has this text")
    parser.add_argument("--times", action="store_true", help="also tell the processor time of each")
    given = parser.parse_args()
    form = "long" if given.long else "short"
    table = long() if given.long else catalogue()
    kept = read(form)
    now, moved = {}, 0
    for name, compute in table.items():
        if given.only in name:
            began = time.process_time()
            now[name] = compute()
            if given.times:
                print(f"{time.process_time() - began:6.2f} s  {name}", flush=True)
            if not same(kept.get(name), now[name], exactly=True):
                moved += 1
                near = name in kept and same(kept[name], now[name])
                print(f"moved{' (in the last bits)' if near else ''}: {name}", flush=True)
    gone = [name for name in kept if name not in table]
    print(f"{len(now)} digests, {moved} moved, {len(gone)} gone")
    if given.write:
        write(form, {name: now.get(name, kept.get(name)) for name in table if name in now or name in kept})
    return 0 if given.write or not (moved or gone) else 1


if __name__ == "__main__":
    sys.exit(main())
