"""Real data sets that come with the models; SOURCES.md says where each is from."""
