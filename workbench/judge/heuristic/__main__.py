"""`python -m workbench.judge.heuristic`: how often the rules are right; with `--wrong`, also where they are not, among
the items that they may be changed with. The figures for the probes are the shipped ones: another program asks them."""

import sys

from workbench.judge.heuristic.measure import Item, figures, measure
from workbench.judge.heuristic.measured import PROBES, note
from workbench.text import one_line


def main(arguments: list[str]) -> int:
    items = measure()
    lines = [f"{'':22}{'tuned on':>16}{'held out':>16}{'probes':>16}"]
    for kind, halves in figures(items).items():
        lines.append(f"{kind:22}" + "".join(f"{_share(right, of):>16}" for right, of in (*halves, PROBES[kind])))
    lines += ["", note()]
    if "--wrong" in arguments:
        lines += [_line(item) for item in items if not item.right and item.half == "tuned"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _share(right: int, of: int) -> str:
    return f"{right / of:.2f} ({right}/{of})"


def _line(item: Item) -> str:
    return one_line(f"{item.kind}: expected {item.expected}, got {item.given}: {item.shown}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
