"""The live engine: decoder, key/value stores, sampler and generation."""
