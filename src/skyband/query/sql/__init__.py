"""A query as a sentence of SQL: read (`parser`) and written (`writer`)."""
