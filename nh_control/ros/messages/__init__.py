"""Messages and their conversions: the only place that reads or fills a message's fields."""
