"""Tables as text: delimited files, data frames and arrays, read without guessing."""
