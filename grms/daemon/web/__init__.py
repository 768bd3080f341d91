"""Pages for operators: a web server in a thread, its connections, and access control."""
