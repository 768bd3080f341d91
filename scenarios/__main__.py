"""`python -m scenarios` is the command `scenario`."""

from scenarios.command import main

if __name__ == "__main__":
    main()
