"""Pictures of what the models of one family have."""
