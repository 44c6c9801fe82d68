"""`python -m explorer`: the command line."""

import sys

from explorer.cli.main import main, set_up

if __name__ == "__main__":
    set_up(sys.argv[1:])
    sys.exit(main(sys.argv[1:]))
