"""The verbs of the command line, those that belong together in one file."""
