"""The keys page on standard output: `python -m workbench.ui.actions > docs/keys.md`."""

import sys

from workbench.ui.actions.keys_page import document

sys.stdout.write(document())
