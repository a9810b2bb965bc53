"""Running sources over a corpus, or over a file as a stream, in one process or several."""
