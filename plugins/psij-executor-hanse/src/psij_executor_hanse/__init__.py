"""PSI/J's jobs at a Hanse site: `JobExecutor.get_instance("hanse")`."""
