"""From executed notebooks to one tidy table and a summary figure."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from paperbook.errors import PaperbookError
from paperbook.evidence.intervals import interval
from paperbook.sweep.store import Run, Store, read_run

REPLICATES = "seed"
MOST_PANELS = 6


def collect(store: Store) -> pd.DataFrame:
    """One row a point and statistic, made from the notebooks of ``store`` alone.

    Columns: ``key``, ``slug``, the chapter's parameters, ``statistic``, ``kind`` (claim or number),
    ``mean``, ``low``, ``high``, ``samples``, ``verdict``, ``seconds``, ``cpu_seconds``,
    ``peak_memory_mb``, ``fingerprint``, ``versions``.

    Raises:
        PaperbookError: no finished point.
    """
    runs = [run for path in store.finished() if (run := read_run(path))]
    if not runs:
        raise PaperbookError(f"{store.folder.name}: no finished points here")
    return pd.DataFrame([row for run in runs for row in _rows(run)])


def _rows(run: Run) -> list[dict[str, Any]]:
    record = run.record
    shared = {"key": run.point.key, "slug": run.point.slug}
    shared |= {name: _cell(value) for name, value in record["parameters"].items()}
    cost = {
        "seconds": run.seconds,
        "cpu_seconds": record["cpu_seconds"],
        "peak_memory_mb": record["peak_memory_mb"],
        "fingerprint": record["fingerprint"],
        "versions": json.dumps(record["versions"], sort_keys=True),
    }
    statistics = [*_claims(record), *_numbers(record)]
    return [shared | statistic | cost for statistic in statistics]


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _claims(record: dict) -> list[dict[str, Any]]:
    return [
        {
            "statistic": f"{claim['claim']}.{test['name']}" if test["name"] else claim["claim"],
            "kind": "claim",
            "mean": test["value"],
            "low": test["low"],
            "high": test["high"],
            "samples": len(test["samples"]),
            "verdict": test["verdict"],
        }
        for claim in record["claims"]
        for test in claim["tests"]
    ]


def _numbers(record: dict) -> list[dict[str, Any]]:
    empty = {"low": None, "high": None, "samples": 1, "verdict": ""}
    return [
        {"statistic": name, "kind": "number", "mean": float(value), **empty}
        for name, value in record["numbers"].items()
        if not isinstance(value, str)
    ]


def save(table: pd.DataFrame, folder: Path) -> Path:
    """Write ``results.parquet`` so that a reader never sees half of it."""
    target = folder / "results.parquet"
    part = folder / ".results.parquet.part"
    table.to_parquet(part, index=False)
    part.replace(target)
    return target


def parameter_columns(table: pd.DataFrame) -> list[str]:
    columns = list(table.columns)
    return columns[columns.index("slug") + 1 : columns.index("statistic")]


def varied_columns(table: pd.DataFrame) -> list[str]:
    """Parameters with several values, the replicates (``seed``) left out."""
    names = parameter_columns(table)
    return [n for n in names if table[n].nunique() > 1 and n != REPLICATES]


def choose(table: pd.DataFrame, names: list[str]) -> list[str]:
    """Statistics to draw: ``names``, or the claims that vary, then the numbers that do.

    Raises:
        PaperbookError: a name that the table lacks.
    """
    known = list(dict.fromkeys(table["statistic"]))
    for name in names:
        if name not in known:
            raise PaperbookError(f"no statistic {name!r}; known: {', '.join(known)}")
    if names:
        return names
    moving = [n for n in known if table.loc[table["statistic"] == n, "mean"].nunique() > 1]
    return (moving or known)[:MOST_PANELS]


def summarise(table: pd.DataFrame, statistic: str, by: list[str]) -> pd.DataFrame:
    """Mean of ``statistic`` over all else, for each value of ``by``, with a 95 % interval.

    With one run a cell the interval is the run's own.
    """
    rows = table[table["statistic"] == statistic]
    cells = []
    for values, group in rows.groupby(by, sort=True):
        means = group["mean"].to_numpy(float)
        if len(means) > 1:
            low, high = interval(means, "t")
        else:
            low, high = group["low"].iloc[0], group["high"].iloc[0]
        cells.append([*values, means.mean(), low, high, len(means)])
    return pd.DataFrame(cells, columns=[*by, "mean", "low", "high", "runs"])
