"""Real batch systems behind the port: their programs are run, their queues parsed and compared."""
