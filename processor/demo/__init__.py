"""The demo: brokers from nothing, made transcripts, and the whole way through."""
