"""Top-k over uncertain streams (jin2008).

adapter.py          joins queries with their engine: probabilities, names of alternatives
semantics.py        the four semantics: stop condition, compact set and answer (sections 1, 3 and 5)
dom.py, bs.py       engines with kernels: both are a FrontEngine (front_engine.py, kernels/)
csq.py, ccsq.py,    the paper's synopses (section 4, Algorithms 1 and 2) in Python: each is a Synopsis (synopsis.py)
scsq.py,            in a SynopsisEngine (synopsis_engine.py)
scsq_buffer.py
exclusive.py        BS for alternatives that exclude each other: a Synopsis too
changes.py          arrivals by group; answers and changes as the contract wants them
size_model.py       expected sizes, for `explain`
"""
