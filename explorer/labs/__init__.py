"""Experiments: one file each, parameters in, rows out."""
