"""Generated messages, one module per file of ``protos/lancetable``; only codecs import them."""
