"""Components whose labels mean nothing: their symmetries, and draws brought to one labelling."""
