"""Files into the records topic: how their lines become records, sent once or as they grow."""
