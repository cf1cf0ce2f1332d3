"""The kinds of query, one file each."""

from skyband.query.kinds.above import Above
from skyband.query.kinds.groups import TopKGroups
from skyband.query.kinds.incomplete import TopKIncomplete
from skyband.query.kinds.pairs import TopKPairs
from skyband.query.kinds.query import KINDS, Query
from skyband.query.kinds.topk import TopK
from skyband.query.kinds.uncertain import TopKUncertain

KINDS.update({kind.kind: kind for kind in (TopK, Above, TopKGroups, TopKPairs, TopKIncomplete, TopKUncertain)})

__all__ = ["KINDS", "Above", "Query", "TopK", "TopKGroups", "TopKIncomplete", "TopKPairs", "TopKUncertain"]
