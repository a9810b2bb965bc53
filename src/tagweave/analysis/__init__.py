"""What each source of a corpus is worth, with gold or without."""
