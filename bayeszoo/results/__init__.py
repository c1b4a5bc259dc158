"""A fit as an ArviZ tree: assembled, read back, summarized, judged and saved."""
