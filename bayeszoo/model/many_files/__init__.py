"""Statistics of one file or many, added up on this machine or on a cluster."""
