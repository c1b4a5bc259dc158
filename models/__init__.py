"""The zoo: one file a model. A new file here is found by name; nothing else needs an edit."""
