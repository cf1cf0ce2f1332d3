"""Top-k over uncertain streams (jin2008).

adapter.py          joins queries with their engine: probabilities, names of alternatives
semantics.py        the four semantics: stop condition, compact set and answer (sections 1, 3 and 5)
dom.py, bs.py       engines with a front: both are a FrontEngine (front_engine.py)
csq.py, ccsq.py,    the paper's synopses (section 4, Algorithms 1 and 2), and the compact set of all that has arrived
scsq.py,            (section 3): each is a QueueEngine (queue_engine.py, queue_groups.py)
scsq_buffer.py,
compact.py
exclusive.py        BS and DOM for alternatives that exclude each other; rivals.py: which rows are rejected because of
                    them; first_version.py: snapshots of version 0.1
changes.py          arrivals by group; answers and changes as the contract wants them
size_model.py       expected sizes, for `explain`
kernels/            the steps of all engines
"""
