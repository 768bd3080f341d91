"""`python -m lrms_sim` is the command `lrms-sim`."""

from lrms_sim.command import main

if __name__ == "__main__":
    main()
