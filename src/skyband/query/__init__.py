"""Queries as values: kinds of query, windows, scorings, expressions, SQL. No engine is known here, but for its name."""
