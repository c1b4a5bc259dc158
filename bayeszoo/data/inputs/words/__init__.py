"""Inputs of documents and their words."""
