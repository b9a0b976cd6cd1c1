"""`python -m nh_control` is the command `nh_control`."""

import sys

from nh_control.cli import main

if __name__ == "__main__":
    sys.exit(main())
