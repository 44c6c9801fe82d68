"""Caches of real architectures: built thin by transformers, filled, and weighed to the byte."""
