"""Engines: one folder per kind of question, one file per algorithm."""
