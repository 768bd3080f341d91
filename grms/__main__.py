"""`python -m grms` is the command `grms`."""

from grms.command import main

if __name__ == "__main__":
    main()
