"""Plots of a Monitor: the score-time plane, the answers over time, the objects kept. With matplotlib.

    sb.plot.plane(monitor)      the window, the answer on top, the skyband below it
    sb.plot.answers(changes)    each stay in the answer: from when to when, at which score
    sb.plot.state(stats)        objects kept against arrivals, per query or over time

Each draws into `ax` if it is given, else into a new figure, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.errors import QueryError
from skyband.monitor.monitor import Monitor
from skyband.plot.views import Plane, plane_of, points_of
from skyband.query.windows import Last

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, QUIET, WINDOW, BAND, TOP = "#1b2733", "#5d6b78", "#b9c3cc", "#eef3f8", "#c9730a", "#1668b8"
_COLOURS = (TOP, "#d55e00", "#00805e", "#8c4fb8", "#9a6a00", "#a8326e", "#3d5a6c", "#5a7d00")
_MOST = 8  # groups with a colour of their own


def _axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('skyband.plot needs matplotlib: pip install "skyband[plot]"') from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _clean(ax: Any, **labels: Any) -> Axes:
    from matplotlib import dates

    concise: Any = dates.ConciseDateFormatter
    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, dates.DateLocator):
        ax.xaxis.set_major_formatter(concise(locator))
    ax.set(**labels)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(SOFT)
    ax.tick_params(colors=INK)
    return ax  # type: ignore[no-any-return]


def _instants(plane: Plane, stamps: Any) -> Any:
    """Stamps as matplotlib takes them."""
    found = plane.times(np.asarray(stamps, np.int64))
    return found if isinstance(found, np.ndarray) else found.to_numpy(zero_copy_only=False)


def plane(
    monitor: Monitor, name: str | None = None, *, key: Any = None, rows: Any = None, ax: Axes | None = None
) -> Axes:
    """Plot the score-time plane of a query: its window, the answer now, and the objects that may become one.

    Parameters
    ----------
    monitor : Monitor
        The Monitor.
    name : str, optional
        The query, if there are several.
    key : optional
        The group, if there are several: a value, or a tuple for several `per` columns.
    rows : optional
        Rows that were pushed (the last ones, in order), to show objects that are not kept too; for count windows they
        must be the last ones of the group, all accepted.
    ax : matplotlib Axes, optional
        The axes to draw into (default: a new figure).

    Returns
    -------
    matplotlib Axes

    """
    seen = plane_of(monitor, name, key=key)
    ax = _axes(ax, (9, 4))
    top, band = seen.rank > 0, seen.rank == 0
    if seen.begin is not None and seen.length:
        ax.axvspan(*_instants(seen, [seen.begin, seen.now]), color=WINDOW, zorder=0)
    if rows is not None:
        _forgotten(ax, monitor, seen, rows)
    if band.any():
        stamps = _instants(seen, seen.stamps[band])
        ax.scatter(
            stamps, seen.scores[band], s=26, marker="D", color=BAND, label=f"skyband: may become one ({band.sum()})"
        )
    if top.any():
        label = f"the answer now ({top.sum()})"
        ax.scatter(_instants(seen, seen.stamps[top]), seen.scores[top], s=64, color=TOP, zorder=3, label=label)
    else:
        ax.text(0.5, 0.5, "nothing has arrived yet", transform=ax.transAxes, ha="center", color=SOFT)
    if top.any() or band.any():
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
    group = f" of {', '.join(map(str, seen.key))}" if seen.key else ""
    if seen.query.kind == "TopKPairs":
        across = "the pair's older member"
    else:
        across = "time" if seen.time_type is not None else "number of the arrival"
    ax.set_title(f"{seen.name}{group}: {_window(seen)}", loc="left", color=INK, fontsize=11)
    return _clean(ax, xlabel=across, ylabel=_scored(seen.query))


def _window(seen: Plane) -> str:
    window = seen.query.window
    if not isinstance(window, Last):
        return "until deleted"
    if window.count is not None:
        return f"the last {window.count:,} arrivals"
    return f"the last {window.span:,}" if window.span is not None else f"the last {window.to_dict()['last']}"


def _scored(query: Any) -> str:
    by = getattr(query, "by", None)
    return by if isinstance(by, str) and len(by) < 30 else "score"


def _forgotten(ax: Any, monitor: Monitor, seen: Plane, rows: Any) -> None:
    time = monitor._loop.state.options.time if seen.time_type is not None else None
    stamps, scores = points_of(seen.query, rows, time)
    if time is None:
        stamps = stamps + seen.now - (int(stamps[-1]) if len(stamps) else 0)
    kept = set(zip(seen.stamps.tolist(), seen.scores.tolist(), strict=True))
    gone = np.array([point not in kept for point in zip(stamps.tolist(), scores.tolist(), strict=True)], np.bool_)
    if gone.any():
        label = f"may be forgotten ({int((gone & (stamps > (seen.begin or 0))).sum())} of the window)"
        ax.scatter(_instants(seen, stamps[gone]), scores[gone], s=8, color=QUIET, label=label, zorder=1)


def answers(changes: Any, query: str | None = None, *, key: Any = None, ax: Axes | None = None) -> Axes:
    """Plot each stay in the answer as a line: from when to when, at which score.

    Parameters
    ----------
    changes : pyarrow.Table or list of pyarrow.Table
        Changes as `Monitor.push` returns them, in order.
    query : str, optional
        The query, if there are several.
    key : optional
        One group (default: all, each with its colour).
    ax : matplotlib Axes, optional
        The axes to draw into (default: a new figure).

    Returns
    -------
    matplotlib Axes

    """
    table = _joined(changes)
    names = table["query"].unique().to_pylist() if table.num_rows else []
    if query is None and len(names) > 1:
        raise QueryError(f"there are changes of several queries: choose one of {', '.join(map(str, names))}.")
    if query is not None and names and query not in names:
        raise QueryError(f"there are no changes of {query!r}, only of {', '.join(map(str, names))}.")
    ax = _axes(ax, (9, 4))
    timed = "time" in table.column_names
    found = [row for row in table.to_pylist() if query is None or row["query"] == query]
    if not found:
        ax.text(0.5, 0.5, "no changes", transform=ax.transAxes, ha="center", color=SOFT)
        return _clean(ax, xlabel="time" if timed else "arrival", ylabel="score")
    per = _per(table.column_names)
    stays, last = _stays(found, per, "time" if timed else "at")
    if key is not None:
        wanted = key if isinstance(key, tuple) else (key,)
        stays = [stay for stay in stays if stay[0] == wanted]
    groups = list(dict.fromkeys(stay[0] for stay in stays))
    for number, group in enumerate(groups):
        own = [stay for stay in stays if stay[0] == group]
        colour = _COLOURS[number % _MOST] if len(groups) <= _MOST else TOP
        label = ", ".join(map(str, group)) if 1 < len(groups) <= _MOST else None
        ax.hlines(
            [stay[1] for stay in own],
            [stay[2] for stay in own],
            [last if stay[3] is None else stay[3] for stay in own],
            color=colour,
            lw=1.6,
            label=label,  # type: ignore[arg-type]  # None: no entry in the legend
        )
        here = [stay for stay in own if stay[3] is None]
        ax.scatter([last] * len(here), [stay[1] for stay in here], s=18, color=colour, zorder=3)
    if 1 < len(groups) <= _MOST:
        ax.legend(frameon=False, title=", ".join(per))
    return _clean(ax, xlabel="time" if timed else "arrival", ylabel="score", title="")


def _joined(changes: Any) -> Any:
    import pyarrow as pa

    if isinstance(changes, list | tuple):
        tables = [table for table in changes if table.num_rows]
        return (
            pa.concat_tables(tables, promote_options="permissive")
            if tables
            else changes[0]
            if changes
            else pa.table({})
        )
    if not isinstance(changes, pa.Table) or not {"query", "at", "score", "diff"} <= set(changes.column_names):
        raise QueryError("answers() draws changes, as Monitor.push gives them: a table or a list of tables.")
    return changes


def _per(names: Sequence[str]) -> list[str]:
    """The columns between `query` and `at`."""
    return list(names[names.index("query") + 1 : names.index("at")])


def _stays(rows: list[dict[str, Any]], per: list[str], across: str) -> tuple[list[list[Any]], Any]:
    """[group, score, from, to] of each stay in the answer (to: None while it lasts), and the last moment."""
    stays: list[list[Any]] = []
    there: dict[Any, list[list[Any]]] = {}
    for row in rows:
        group = tuple(row[name] for name in per)
        identity = (group, row.get("id"), row.get("id_a"), row.get("id_b"), row.get("rank"))
        if row["diff"] > 0:
            stays.append([group, row["score"], row[across], None])
            there.setdefault(identity, []).append(stays[-1])
        elif there.get(identity):
            there[identity].pop(0)[3] = row[across]
    return stays, max(row[across] for row in rows)


def state(stats: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, ax: Axes | None = None) -> Axes:
    """Plot objects kept against arrivals.

    Parameters
    ----------
    stats : dict or list of dict
        The result of `Monitor.stats()` (a bar per query), or several of them in order (a line per query).
    ax : matplotlib Axes, optional
        The axes to draw into (default: a new figure).

    Returns
    -------
    matplotlib Axes

    """
    many = [stats] if isinstance(stats, Mapping) else list(stats)
    if not many or any("queries" not in one for one in many):
        raise QueryError("state() draws what Monitor.stats() gives: one of them, or a list, in order.")
    names = list(dict.fromkeys(name for one in many for name in one["queries"]))
    if isinstance(stats, Mapping):
        ax = _axes(ax, (7, 1.5 + 0.5 * max(len(names), 2)))
        places = np.arange(len(names))
        arrived = [max(stats["queries"][name]["arrivals"], 1) for name in names]
        kept = [stats["queries"][name]["objects"] for name in names]
        ax.barh(places, arrived, color=WINDOW, edgecolor=QUIET, label="arrivals so far")
        ax.barh(places, kept, height=0.5, color=BAND, label="objects kept")
        for place, number, of in zip(places, kept, arrived, strict=True):
            ax.annotate(f" {number:,} of {of:,}", (max(number, 1), place), va="center", color=INK, fontsize=9)
        ax.set_yticks(places, names)
        ax.invert_yaxis()
        ax.set_xscale("log")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
        return _clean(ax, xlabel="objects, each tick ten times the one before", xlim=(1, None))
    ax = _axes(ax, (9, 4))
    for number, name in enumerate(names):
        had = [one for one in many if name in one["queries"]]
        colour = _COLOURS[number % _MOST]
        ax.plot(
            [one["arrivals"] for one in had], [one["queries"][name]["objects"] for one in had], color=colour, label=name
        )
    if 1 < len(names) <= 2 * _MOST:
        ax.legend(frameon=False)
    return _clean(ax, xlabel="arrivals", ylabel="objects kept", ylim=(0, None))
