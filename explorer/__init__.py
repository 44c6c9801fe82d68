"""An explorer of the LLM KV cache: everything that the pages show, computed or measured here."""
