"""`monitor` and `answers`: pack -> state by shard -> unpack, for batch and streaming DataFrames."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from typing import Any, Literal, ParamSpec

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, greatest, when
from pyspark.sql.functions import max as largest
from pyspark.sql.functions import sum as total
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from skyband.errors import QueryError
from skyband.monitor.loop import Loop
from skyband.monitor.sources import all_queries
from skyband.query.kinds import Query, TopKIncomplete, TopKUncertain
from skyband.query.options import Options, check_op, named
from skyband.spark.checkpoint import order_of, resumed, start, stored_plan
from skyband.spark.mappers import PACKED, pack, pack_subscriptions, reject, unpack
from skyband.spark.merge import MERGED, Merger
from skyband.spark.operator import OUTPUT, OUTPUT_TO_MERGE, Operator
from skyband.spark.plan import MOST_SHARDS, Plan
from skyband.spark.refusals import check_for_spark, zone_of
from skyband.spark.schema import check_rows, check_schema, output_types, sample
from skyband.spark.session import check, partitions_of
from skyband.spark.subscriptions import SUBSCRIBER, sources
from skyband.spark.versions import arrow_schema, start_state_stores
from skyband.tables.changes import answer_names, change_names

P = ParamSpec("P")


def monitor(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    id: str,
    time: str | None = None,
    order: str | Iterable[str] | None = None,
    part: str = "part",
    value: str = "value",
    op: str | None = None,
    keep: str | Iterable[str] | Mapping[str, str] = (),
    emit: Literal["arrival", "batch"] = "arrival",
    late: Literal["accept", "drop"] = "accept",
    invalid: Literal["reject", "raise"] = "reject",
    watermark: str | None = None,
    shards: int | None = None,
    forget: str | int | None = None,
    blocks: bool | None = None,
    metrics: str | None = None,
    subscriptions: Mapping[str, DataFrame] | None = None,
    checkpoint: str | None = None,
    start_from: str | None = None,
    schema: StructType | None = None,
    streaming: bool | None = None,
) -> DataFrame:
    """The changes of the answers, as a DataFrame in append mode; columns as those of `skyband.Monitor.push`.

    `at` is null for time windows.

    Parameters
    ----------
    df : DataFrame
        The stream, or a table that is taken as one trigger.
    queries : Query, list of Query, or {name: Query}
        The queries; those of a list are named q0, q1, ...
    id : str
        The column that labels objects.
    time : str, optional
        The column of times: a timestamp, a date or an integer.
    order : str or list of str, optional
        The columns that say in which order the rows of a trigger arrive (default: time, then id).
    part, value : str
        For TopKIncomplete: the columns of the part and of its value.
    op : str, optional
        For queries over UntilDeleted(): the column that says whether a row is an "insert", an "update" or a "delete"
        of its id, in the row's own group.
    keep : str, list of str, or {output name: column}
        Columns to report with each object; "*": all of `df` that have no role and no name of skyband's own.
    emit : "arrival" or "batch"
        Report the changes of each step, or the net changes of each trigger.
    late : "accept" or "drop"
        What to do with objects older than the clock.
    invalid : "reject" or "raise"
        Count rejected rows, or fail at the first.
    watermark : str, optional
        A delay, such as "10 minutes", by which Spark's watermark follows the largest time of any row; it moves the
        clock on when only rejected rows come.
    shards : int, optional
        The number of pieces of state that work side by side. By default as many as Spark has shuffle partitions,
        `spark.sql.shuffle.partitions`, or as a checkpoint has; a number that is given is part of the checkpoint.
    forget : str or int, optional
        How long a group of a count window, of UntilDeleted() or of Ever() may be silent before it is dropped.
    blocks : bool, optional
        Whether all shards score pairs together where there is no `per` (default: over 50,000 arrivals and more).
    metrics : str, optional
        A name under which the query's progress reports arrivals, late, rejected, groups, objects and bytes
        (`observedMetrics`); they are null in a trigger without rows, which a watermark may bring.
    checkpoint : str, optional
        The checkpoint that the stream will be started from. It is read here: what cannot resume from it is a StateError
        now, whether or not rows come, and its number of shards is used if `shards` gives none.
    start_from : str, optional
        Another checkpoint with whose state a new one begins, also with other `shards`: a query goes on from the old one
        of the same question with at least its k and window, whatever its name. Its answer enters in the first trigger.
        Ignored once the new checkpoint has a trigger. Start the source after the rows that the old query has taken.
    schema : StructType, optional
        The columns of `df` and their types, where Spark refuses to say them: in a query function of Declarative
        Pipelines. Other columns are left out.
    streaming : bool, optional
        Whether `df` is a stream, where Spark refuses to say that too (default with `schema`: it is).
    subscriptions : {name: DataFrame}, optional
        For each query with `Each` its subscriptions: a column `subscriber` and those that `Each` names. Static: at a
        restart with another table, what is gone is unsubscribed, what is new or changed subscribes. Streaming: its rows
        are applied first in each trigger, in the order of `order` where it has that column; an optional column `op`
        says "insert", "update" or "delete".

    """
    return _run(locals(), whole=False)


def _arguments_of(
    model: Callable[P, DataFrame],
) -> Callable[[Callable[[dict[str, Any]], DataFrame]], Callable[P, DataFrame]]:
    """Give a function the signature and the Parameters section of another; it is called with all arguments by name."""
    signature = inspect.signature(model)
    parameters = (model.__doc__ or "").partition("    Parameters\n")

    def decorate(function: Callable[[dict[str, Any]], DataFrame]) -> Callable[P, DataFrame]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> DataFrame:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return function(bound.arguments)

        call.__doc__ = f"{function.__doc__}\n{parameters[1]}{parameters[2]}"
        vars(call)["__signature__"] = signature
        return call

    return decorate


@_arguments_of(monitor)
def answers(arguments: dict[str, Any]) -> DataFrame:
    """After each trigger the whole answers of the groups that changed: `query`, then the columns of an answer.

    A group whose answer has become empty has no rows; `monitor` reports what left it. `emit` makes no difference.
    """
    return _run(arguments, whole=True)


def rejected(
    df: DataFrame,
    queries: Query | Iterable[Query] | Mapping[str, Query],
    *,
    time: str | None = None,
    id: str | None = None,
    part: str = "part",
    value: str = "value",
    op: str | None = None,
) -> DataFrame:
    """The rows that `monitor` rejects, with all their columns, a `reason` and the `queries` that reject it.

    What depends on earlier rows (unknown ids, second rows of a part, groups whose probabilities pass 1) only the
    running query knows.

    Parameters
    ----------
    df : DataFrame
        The rows.
    queries : Query, list of Query, or {name: Query}
        The queries.
    time : str, optional
        The column of times.
    id : str, optional
        The column that labels objects, for TopKIncomplete and queries over UntilDeleted().
    part, value : str
        For TopKIncomplete: the columns of the part and of its value.
    op : str, optional
        For queries over UntilDeleted(): the column of "insert", "update" and "delete".

    """
    check(df.sparkSession, streaming=False)
    by_name = named(queries)
    roles: dict[str, Any] = {"time": time, "id": id, "part": part, "value": value, "op": op}
    Loop.of(by_name, **roles)  # reports mistakes before any job runs
    by_name = {name: query for name, query in by_name.items() if query.source is None}
    check_for_spark(by_name)
    for name in ("reason", "queries"):
        if name in df.columns:
            raise QueryError(f"rejected() adds a column {name!r}, and the DataFrame has one. Rename that first.")
    check_rows(sample(df.schema, tuple(df.columns)), by_name, roles)
    schema = StructType(
        [StructField("reason", StringType()), StructField("queries", ArrayType(StringType())), *df.schema.fields]
    )
    zone = zone_of(df.schema, by_name, str(df.sparkSession.conf.get("spark.sql.session.timeZone")))
    call: Callable[[Iterator[Any]], Iterator[Any]] = partial(reject, by_name, roles, tuple(df.columns), zone)
    plain = [col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(df.columns)]
    return df.select(*plain).mapInArrow(call, schema)


def _run(given: Mapping[str, Any], *, whole: bool) -> DataFrame:
    """The DataFrame of a call of `monitor` (whole: of `answers`) with these arguments."""
    given, known = _declared(given)
    df: DataFrame = given["df"]
    options = Options(**{one.name: given[one.name] for one in dataclasses.fields(Options) if one.name != "device"})
    options = options.settled(df.columns, named(given["queries"]).values())
    if whole:
        options = dataclasses.replace(options, emit="batch")
    plan = _plan(given, options)
    seeds = None
    if given["start_from"] is not None:
        if not given["streaming"]:
            raise QueryError("start_from= is for a stream: a query over a table has no state. Leave it out.")
        plan, seeds = start(df.sparkSession, given["start_from"], plan)
    timed = options.time is not None
    types, keys = output_types(df.schema, plan, _subscriber_type(given))
    if whole:
        names = ["query", *answer_names(plan.queries.values(), options.kept, timed, keys)]
    else:
        names = change_names(plan.queries.values(), options.kept, timed, keys)
    schema = StructType([StructField(name, types[name]) for name in names])
    first: Callable[[Iterator[Any]], Iterator[Any]] = partial(pack, plan)
    last: Callable[[Iterator[Any]], Iterator[Any]] = partial(unpack, arrow_schema(schema))
    plain = [col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(plan.wanted(plan.queries))]
    slim = StructType(
        [StructField(f"c{i}", df.schema[name].dataType) for i, name in enumerate(plan.wanted(plan.queries))]
    )
    packed = known(df.select(*plain), slim).mapInArrow(first, PACKED)  # which looks them up unquoted; `pack` renames
    for name, source in plan.subscribed.items():
        if source.digest is None:
            mine = [col(_quoted(column)).alias(f"c{i}") for i, column in enumerate(source.columns)]
            following: Callable[[Iterator[Any]], Iterator[Any]] = partial(pack_subscriptions, plan.slim, name)
            packed = packed.union(given["subscriptions"][name].select(*mine).mapInArrow(following, PACKED))
    if plan.watermarked:
        watermark = given["watermark"]
        try:
            packed = packed.withWatermark("moment", watermark)
        except (PySparkException, TypeError) as error:
            raise QueryError(f'watermark={watermark!r} must be a delay that Spark reads, as "10 minutes".') from error
    mode = "EventTime" if plan.watermarked else "None"
    columns = OUTPUT_TO_MERGE if plan.blocked else OUTPUT
    operator = Operator(plan.slim, whole=whole)
    out = packed.groupBy("shard").transformWithStateInPandas(operator, columns, "append", mode, seeds)
    if given["metrics"] is not None:
        out = out.observe(given["metrics"], *[figure.alias(name) for name, figure in _figures().items()])
    out = known(out, columns)
    if plan.blocked:
        merger = Merger(plan.slim, whole=whole)
        rows = known(out.select("merge", "blob"), StructType(OUTPUT_TO_MERGE.fields[:2]))
        out = known(rows.groupBy("merge").transformWithStateInPandas(merger, MERGED, "append", mode), MERGED)
    return out.mapInArrow(last, schema)


def _declared(given: Mapping[str, Any]) -> tuple[dict[str, Any], Callable[[DataFrame, StructType], DataFrame]]:
    """The arguments with what is said of `df`, and what declares the columns of a DataFrame made of it.

    Declarative Pipelines refuse all analysis in query functions, even that of `mapInArrow`; `to` says a schema.
    """
    df, schema, streaming = (given[name] for name in ("df", "schema", "streaming"))
    if streaming is not None and not isinstance(streaming, bool):
        raise QueryError(f"streaming={streaming!r} must be True, False or None (Spark says it).")
    if schema is None:
        return {**given, "streaming": df.isStreaming if streaming is None else streaming}, lambda frame, _: frame
    if not isinstance(schema, StructType):
        raise QueryError(
            f"schema={schema!r} must be a StructType, since Declarative Pipelines let nobody read one from text there: "
            'StructType().add("id", LongType()).add("time", TimestampType()).'
        )
    declared = {**given, "df": df.to(schema), "streaming": streaming is not False}
    return declared, lambda frame, fields: frame.to(fields)


def _plan(given: Mapping[str, Any], options: Options) -> Plan:
    """Check the arguments against each other and the DataFrame."""
    df, order, shards, blocks = (given[name] for name in ("df", "order", "shards", "blocks"))
    streaming: bool = given["streaming"]
    check(df.sparkSession, streaming=streaming)
    if not streaming:
        start_state_stores(df.sparkSession)
    queries = all_queries(Loop.of(named(given["queries"]), **dataclasses.asdict(options)).state)  # reports mistakes
    check_for_spark(queries, given["forget"])
    check_op(options.op, queries.values())
    if options.id is None:
        raise QueryError("skyband.spark needs id=: the column that labels objects, since rows have no number here.")
    ordered = order_of(options, order)
    if options.time is not None and ordered[:1] != (options.time,):
        _check_order(options, queries)
    count = min(partitions_of(df.sparkSession), MOST_SHARDS) if shards is None else shards
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_SHARDS:
        raise QueryError(f"shards={shards!r} must be a whole number from 1 to 10,000.")
    if blocks is not None and not isinstance(blocks, bool):
        raise QueryError(f"blocks={blocks!r} must be True, False or None (where it pays).")
    watermarked = given["watermark"] is not None and streaming
    subscribed = sources(given.get("subscriptions"), queries, ordered, streaming)
    plan = Plan(
        queries, options, ordered, count, tuple(df.columns), given["forget"], watermarked, blocks, shards is None,
        subscribed,
    )  # fmt: skip
    for name, source in subscribed.items():
        if source.table is not None:  # reports mistakes before any job
            trial = Loop.of({name: queries[name]}, **dataclasses.asdict(options))
            trial.queries.subscribed.subscribe(name, source.rows(), SUBSCRIBER, False)
    check_schema(df.schema, plan, given["watermark"])
    plan = dataclasses.replace(plan, zone=_zone(df, plan, given))
    if given["checkpoint"] is None:
        return plan
    if not streaming:
        raise QueryError("checkpoint= is for a stream: a query over a table has none. Leave it out.")
    stored = stored_plan(df.sparkSession, given["checkpoint"])
    return plan if stored is None else resumed(plan, stored)


def _zone(df: DataFrame, plan: Plan, given: Mapping[str, Any]) -> str | None:
    """The session's time zone, if the queries depend on it: those over rows, or those over answers."""
    zone = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
    types, _ = output_types(df.schema, plan, _subscriber_type(given))
    shown = StructType([StructField(name, type_) for name, type_ in types.items()])
    asking = {name: query for name, query in plan.queries.items() if query.source is not None}
    return zone_of(df.schema, plan.over_rows, zone) or zone_of(shown, asking, zone)


def _subscriber_type(given: Mapping[str, Any]) -> DataType | None:
    """The type of the ids of subscribers."""
    frames = list((given.get("subscriptions") or {}).values())
    return frames[0].schema[SUBSCRIBER].dataType if frames else None


def _check_order(options: Options, queries: Mapping[str, Query]) -> None:
    """Refuse what needs an order that begins with the time."""
    wanted = f"an order that begins with the time column, order=({options.time!r}, ...)"
    if options.late == "drop":
        raise QueryError(
            f'late="drop" needs {wanted}: '
            "without it a shard cannot know which of its rows other shards' rows have made late."
        )
    for name, query in queries.items():
        once = isinstance(query, TopKIncomplete) and query.most_rows is not None
        grouped = isinstance(query, TopKUncertain) and query.group is not None
        if options.timed(query.window) and (once or grouped):
            said = "group=" if grouped else "repeat=None" if getattr(query, "repeat", None) is None else "at_most="
            raise QueryError(
                f"{name}: {said} needs {wanted}: without it a shard cannot know which rows have left the window when "
                "the next one comes."
            )


def _figures() -> dict[str, Column]:
    """The metrics of a trigger; queries without `per` count a late row in each of their shards.

    Null unless all shards report: in a trigger without rows, which a watermark brings, only those with an expiry do.
    """
    late, refused = (greatest(total(name), largest(f"{name}_anywhere")) for name in ("late", "refused"))
    figures = {name: total(name) for name in ("groups", "objects", "bytes")}
    figures = {"arrivals": total("arrivals") - late, "late": late, "rejected": total("rejected") + refused, **figures}
    whole = total("reports") == largest("shards")
    return {name: when(whole, figure) for name, figure in figures.items()}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
