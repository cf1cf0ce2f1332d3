"""Engines of TopKPairs (shen2012): the k best pairs of the objects of a window."""
