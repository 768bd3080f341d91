"""Jobs that users submit to the batch system itself, and that the site may move to a partner."""
