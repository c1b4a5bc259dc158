"""Tools for all storeys, independent of models: optimization, quadrature, signals, threads, and the gate."""
