"""Read a table: a request becomes a plan, a plan becomes batches; single rows by take."""
