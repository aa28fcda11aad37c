"""Where records come from, besides Kafka."""
