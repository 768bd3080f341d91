"""Jobs that users have handed to the batch system itself, and that the site may move to a partner."""
