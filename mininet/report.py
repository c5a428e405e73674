"""What a run has shown, for people and for programs."""

from __future__ import annotations

import json
from typing import Dict, List, Optional, Sequence

import counters
from bench import Measurement, Result, root_of, tree_pairs
from graph import Fabric


def table(rows: Sequence[Sequence[object]]) -> str:
    """Lines up cells: the first column to the left, others to the right."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()
        for row in cells)


def text(fabric: Fabric, result: Result) -> str:
    parts = [measurements(result)]
    if result.struck:
        parts.append("In the middle of the last size: %s." % result.struck)
    parts += [links(fabric, result), agents(result)]
    parts.append("FAILED: %s" % result.failure if result.failure else "All results are right.")
    return "\n\n".join(p for p in parts if p)


def measurements(result: Result) -> str:
    rows: List[Sequence[object]] = [("BYTES", "OPERATIONS", "MIN", "MEDIAN", "P99", "MBIT/S", "TRANSPORT", "REDUCED BY", "RESULT", "ROOT")]
    for m in result.measurements:
        r = m.row
        rows.append((
            r["bytes"], r["iterations"], duration(r["min_us"]), duration(r["median_us"]), duration(r["p99_us"]),
            "%.1f" % goodput(m), r["transport"], r["reduced_by"] or "-", r["result"], root_of(m.tree) or "-"))
    refusals = sorted({m.refusal for m in result.measurements if m.refusal})
    return "\n".join([table(rows)] + ["No tree: %s." % r for r in refusals]) if result.measurements else ""


def duration(microseconds: str) -> str:
    us = float(microseconds)
    return "%.0f us" % us if us < 1e4 else "%.1f ms" % (us / 1e3) if us < 1e7 else "%.1f s" % (us / 1e6)


def goodput(m: Measurement) -> float:
    """Mbit/s: the bits of a host's vector by the median time."""
    us = float(m.row["median_us"])
    return 8 * int(m.row["bytes"]) / us if us else 0.0


def links(fabric: Fabric, result: Result) -> str:
    """What links carried in all timed operations, those of trees marked."""
    carried = counters.total([m.carried for m in result.measurements], fabric)
    pairs = [p for m in result.measurements for p in tree_pairs(m.tree)]
    rows: List[Sequence[object]] = [("LINK", "PACKETS >", "PACKETS <", "BYTES >", "BYTES <", "TREE")]
    silent = 0
    for link, (a, b) in zip(fabric.links, carried):
        if a.packets + b.packets == 0:
            silent += 1
            continue
        on = frozenset(e.node for e in link.ends) in pairs
        rows.append((link.name(), a.packets, b.packets, a.bytes, b.bytes, "on" if on else "-"))
    rest = "%d other links carried nothing." % silent if silent else ""
    return "\n".join(p for p in (table(rows) if len(rows) > 1 else "", rest) if p)


AGENT_COLUMNS = (
    ("TREES", ("trees",)),
    ("TAKEN", ("contributions",)),
    ("PARTIALS", ("partials",)),
    ("RESULTS", ("results",)),
    ("PACKETS IN", ("packets.in",)),
    ("PACKETS OUT", ("packets.out",)),
    ("BY ITS CPU", ("handed_packets",)),
)


def agents(result: Result) -> str:
    """What the agents have counted since they started, those that were idle left
    out, beside what reduced on their switches; packets by their CPU are those that
    a target has handed over."""
    pipelines = {v["switch"]: v["pipeline"] for m in result.measurements if m.tree for v in m.tree["switches"]}
    rows: List[Sequence[object]] = [["SWITCH", "PIPELINE"] + [c for c, _ in AGENT_COLUMNS] + ["REPAIRS", "DROPS"]]
    for switch, values in result.agents.items():
        numbers = [sum(int(values.get(k, 0)) for k in keys) for _, keys in AGENT_COLUMNS]
        repairs, drops = (int(sum(v for k, v in values.items() if k.startswith(p + "."))) for p in ("repairs", "drops"))
        if any(numbers) or repairs or drops:
            rows.append([switch, pipelines.get(switch, "-")] + numbers + [repairs, _with_reasons(drops, values)])
    return table(rows) if len(rows) > 1 else ""


def _with_reasons(drops: int, values: Dict[str, float]) -> str:
    reasons = sorted(k.partition(".")[2] for k in values if k.startswith("drops."))
    return "%d (%s)" % (drops, ", ".join(reasons)) if reasons else str(drops)


def document(fabric: Fabric, pipeline: str, result: Result, exchange: Optional[dict] = None) -> dict:
    """All of it, for programs."""
    return {
        "fabric": fabric.name,
        "pipeline": pipeline,
        "measurements": [_measurement(fabric, m) for m in result.measurements],
        "struck": result.struck,
        "agents": result.agents,
        "exchange": exchange,
        "failure": result.failure,
    }


def _measurement(fabric: Fabric, m: Measurement) -> dict:
    r, pairs = m.row, tree_pairs(m.tree)
    return {
        "hosts": int(r["ranks"]), "type": r["type"], "bytes": int(r["bytes"]), "iterations": int(r["iterations"]),
        "min_us": float(r["min_us"]), "median_us": float(r["median_us"]), "p99_us": float(r["p99_us"]),
        "goodput_mbit_per_second": goodput(m),
        "transport": r["transport"], "reduced_by": r["reduced_by"].split("+") if r["reduced_by"] else [],
        "reducers": {v["switch"]: {"pipeline": v["pipeline"], "own": v.get("own", "")} for v in m.tree["switches"]}
        if m.tree else {},
        "right": r["result"] == "right",
        "root": root_of(m.tree), "refusal": m.refusal,
        "links": [
            {
                "link": link.name(), "on_tree": frozenset(e.node for e in link.ends) in pairs,
                "packets": [a.packets, b.packets], "bytes": [a.bytes, b.bytes],
            }
            for link, (a, b) in zip(fabric.links, m.carried)
        ],
    }


def dump(value: dict) -> str:
    return json.dumps(value, indent=2)
