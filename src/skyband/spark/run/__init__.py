"""`skyband run`: a pipeline file on Spark. `command.run` starts it; sinks and sources are classes here."""
