"""Cache methods: one file each, registered by itself."""
