"""Turns transcript lines in Kafka into token-bounded chunks of whole records, exactly once."""
