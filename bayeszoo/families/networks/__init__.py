"""Networks with a hidden layer; all parameters but the hidden weights are integrated out."""
