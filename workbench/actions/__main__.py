"""The keys page on standard output: `python -m workbench.actions > docs/keys.md`."""

import sys

from workbench.actions.keys_page import document

sys.stdout.write(document())
