"""Pictures of one family of models each."""
