"""One file per family of models: what its `config.json` says that every layer keeps."""
