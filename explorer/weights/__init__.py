"""Where model weights come from, checked and cached."""
