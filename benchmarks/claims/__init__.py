"""Claims of papers against stored rows: a rule for each, which computes the verdict."""
