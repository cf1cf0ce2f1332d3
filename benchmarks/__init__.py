"""Benchmarks: an experiment is a data file; run, store and plot are separate steps. See README.md."""
