"""Statistics of rows in parts: chunks of a file, batches of a stream, all rows but one."""
