"""What must happen, and in which order, so that every record lands once; knows no Kafka."""
