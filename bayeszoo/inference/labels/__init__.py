"""Components with exchangeable labels: their symmetries, and draws relabelled consistently."""
