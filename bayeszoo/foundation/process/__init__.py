"""The process and its surroundings: imports, signals, threads, progress, and files written whole or not at all."""
