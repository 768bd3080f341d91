"""What exchange by price or carbon saves, next to fair exchange and none, and who waits for it."""
