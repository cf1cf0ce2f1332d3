"""Numba kernels of TopKUncertain.

records.py          records and NamedTuples of arrays that all of them work on
prefix.py           a walk down the ranking: the stop conditions of the semantics, and the answer
exclusive.py        the same walk over alternatives that exclude each other; choices.py: for u-topk
rivals.py           the valid alternatives of each name, and the rows that are rejected because of them
front.py            the best tuples of a window by rank; sweeps, which rebuild them and drop tuples
changes.py          the changes from one answer to the next
steps.py            BS and DOM: the loop over arrivals and expiries; the entry point `take_groups`
queue.py            the compact sets of one group's window, as runs of an arena
queue_steps.py      the loop over arrivals and expiries for them
csq.py, ccsq.py,    jin2008's algorithms, one file each with its entry point
scsq.py, scsq_buffer.py, compact.py
"""
