"""Hidden quantities of rows: components, clusters, factors, topics and missing levels."""
