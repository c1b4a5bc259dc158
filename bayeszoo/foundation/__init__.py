"""What every storey needs and no model knows: optimization, quadrature, signals, threads, and the gate's arithmetic."""
