"""The command line: options, what the terminal shows, and exit codes."""
