"""`python -m broker` is the command `gorba`."""

from broker.command import main

if __name__ == "__main__":
    main()
