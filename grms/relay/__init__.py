"""A relay: where sites meet that listen to nobody; it passes on what they encrypt for each other."""
