"""The suite that every engine runs through: a Monitor against the oracle, on streams made to break it."""
