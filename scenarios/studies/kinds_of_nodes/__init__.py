"""What exchange brings where sites differ in the kinds of their nodes, and what it costs to tell processors alone."""
