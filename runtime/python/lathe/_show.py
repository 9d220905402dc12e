"""Texts and HTML tables for notebooks."""
from __future__ import annotations

import html
from typing import Any, Iterable, List, Sequence, Tuple


def shape_text(shape: Any) -> str:
    if shape is None:
        return "any shape"
    return "[" + ", ".join("?" if d < 0 else str(d) for d in shape) + "]"


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
    top = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    note = f"<div>{html.escape(note)}</div>" if note else ""
    return f"<div><b>{html.escape(title)}</b>{note}<table><thead><tr>{top}</tr></thead><tbody>{cells}</tbody></table></div>"


def graph_html(title: str, native: Any) -> str:
    if native is None:
        return f"<div><b>{html.escape(title)}</b></div>"
    nodes: List[Tuple[str, str]] = native.nodes()
    counts: dict = {}
    for _, op in nodes:
        counts[op] = counts.get(op, 0) + 1
    rows = []
    for name, op in nodes:
        if op in ("Placeholder", "PlaceholderWithDefault") and len(rows) < 50:
            _, _, types, shape = native.node(name)
            rows.append((f"{name}:0", _dtype(types[0]), shape_text(shape)))
    common = sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:12]
    note = f"{len(nodes)} operations: " + ", ".join(f"{n} {op}" for op, n in common) + (", ..." if len(counts) > 12 else "")
    return table(title, ("placeholder", "dtype", "shape"), rows, note)


def _dtype(number: int) -> str:
    from . import _lathe
    return _lathe.dtype_name(number)


def signature_rows(inputs: Any, outputs: Any) -> List[Tuple[str, str, str, str]]:
    return [(side, key, spec.dtype, shape_text(spec.shape))
            for side, specs in (("input", inputs), ("output", outputs)) for key, spec in specs.items()]
