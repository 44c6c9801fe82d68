"""Arithmetic on specifications; standard library only."""
