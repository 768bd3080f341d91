"""Evolution strategies with an ask-and-tell interface, for any meaning of the genes."""
