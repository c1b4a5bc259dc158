"""What no column holds: components, clusters, factors and topics of rows, and missing levels."""
