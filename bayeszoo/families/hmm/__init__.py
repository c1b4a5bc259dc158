"""Hidden Markov models: forward and backward passes, emissions, tables and state paths."""
