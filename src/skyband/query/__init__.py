"""What is asked: values only. Kinds of query, windows, scorings, expressions, SQL."""
