"""Real batch systems behind the port: their programs are run, their tables read and compared."""
