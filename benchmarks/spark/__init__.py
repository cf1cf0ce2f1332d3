"""Contestants on Spark: streaming queries over files. Loaded only when an experiment names one of them."""
