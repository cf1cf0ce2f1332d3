"""Columns in, columns out: input, kept columns, groups, scores, changes."""
