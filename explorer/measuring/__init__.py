"""Timers, memory, provenance and the Record that carries a measurement."""
