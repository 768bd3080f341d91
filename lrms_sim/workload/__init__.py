"""Jobs and schedules: tables of them, their files, preparation, generators."""
