"""`python -m workbench` is `agent-workbench`."""

from workbench.cli.main import main

if __name__ == "__main__":
    main()
