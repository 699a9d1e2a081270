"""The format core: schemas, manifests, encodings and their messages; bytes only, no I/O."""
