"""Networks with a hidden layer: functions of which only the hidden weights are not integrated out."""
