"""The tables of README.md: mutants noticed per room before and after, and those that survive.

python test/mutation/report.py BEFORE AFTER      (folders of sessions of the same sample)
"""

from __future__ import annotations

import sys
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db


def main(before: Path, after: Path) -> None:
    print("| room | mutants | before | after |\n|---|---|---|---|")
    all_then, all_now, left = {}, {}, []
    for session in sorted(before.glob("*.sqlite")):
        then, now = outcomes(session), outcomes(after / session.name)
        known = then.keys() & now.keys()
        print(_row(session.stem.replace("_", "/"), then, now, known))
        all_then, all_now = all_then | then, all_now | now
        left += sorted(name for name in known if not now[name])
    print(_row("all", all_then, all_now, all_then.keys() & all_now.keys()))
    print("\n" + "\n".join(f"- {name}" for name in left))


def outcomes(session: Path) -> dict[str, bool]:
    """Whether each mutant that was judged was noticed."""
    with use_db(session, WorkDB.Mode.open) as database:
        return {name: result.is_killed for name, result in database.results}


def _row(room: str, then: dict[str, bool], now: dict[str, bool], known: set[str]) -> str:
    counts = [sum(outcome[name] for name in known) for outcome in (then, now)]
    shares = [f"{count} ({100 * count / max(1, len(known)):.0f} %)" for count in counts]
    return f"| {room} | {len(known)} | {' | '.join(shares)} |"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
