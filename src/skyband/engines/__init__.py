"""How queries are answered: one folder per stream model, one file per algorithm."""
