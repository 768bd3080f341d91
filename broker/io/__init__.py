"""Resources, workflows, problems and plans as files."""
