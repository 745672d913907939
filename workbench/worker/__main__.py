"""Entry point: `PYTHON -X utf8 -u WORKER_DIR zygote|solo|functions --control FD --lifeline FD …`.

See the docstring of the package.
"""

import importlib.util
import os
import sys

if __name__ == "__main__":
    _HERE = os.path.dirname(os.path.abspath(__file__))
    # Python puts this folder first on the path, so an agent's `import frames` or `import case` would find the worker's.
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != _HERE]
    _spec = importlib.util.spec_from_file_location(
        "agent_workbench_worker", os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE]
    )
    assert _spec is not None
    assert _spec.loader is not None
    _package = importlib.util.module_from_spec(_spec)
    sys.modules[_spec.name] = _package
    _spec.loader.exec_module(_package)
    from agent_workbench_worker import zygote  # type: ignore[import-not-found]

    sys.exit(zygote.main(sys.argv[1:]))
