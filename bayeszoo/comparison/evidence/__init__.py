"""The log evidence as a function of hyperparameters: its maximum, its surface and its integral."""
