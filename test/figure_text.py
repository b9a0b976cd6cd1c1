"""What a figure shows, as a text that can be stored: labels, scales, limits, and the data of every
line, solid and point, as far as they do not depend on round-off.
"""

import numpy as np


def number(x):
    """Three digits; what is as small as round-off is 0."""
    return str(x) if isinstance(x, str) else "0" if abs(x) < 1e-9 else f"{x:.3g}"


def numbers(values):
    """A few numbers; of many, every tenth part and the last, their mean and their extent."""
    values = np.asarray(values).ravel()
    if len(values) <= 12:
        return " ".join(map(number, values))
    values = np.asarray(values, dtype=float)
    some = [*values[:: len(values) // 5], values[-1]]
    known = values[np.isfinite(values)]
    extent = [*some, known.mean(), known.min(), known.max()] if len(known) else some
    return f"{len(values)}: {' '.join(map(number, extent))}"


def columns(points):
    return " | ".join(map(numbers, np.asarray(points, dtype=float).T))


def collection(part):
    """Segments, corners or points of a collection, in space or not."""
    if hasattr(part, "_segments3d"):
        places = np.vstack(part._segments3d)
    elif hasattr(part, "get_segments"):
        places = np.vstack([np.zeros((0, 2)), *part.get_segments()])
    else:
        places = part.get_offsets() if len(part.get_offsets()) > 1 else np.zeros((0, 2))
    values = part.get_array()
    colors = "" if values is None else f" values {numbers(np.ma.filled(values, np.nan))}"
    if len(part.get_facecolor()):
        colors += f" faces {numbers(part.get_facecolor()[0])}"
    return f"  {type(part).__name__} {part.zorder:g}: {columns(places)}{colors}"


def panel(axes):
    """Lines of text about a panel."""
    if not axes.get_visible():
        return ["(empty)"]
    names = ("x", "y", "z") if hasattr(axes, "get_zlim") else ("x", "y")
    told = [f"panel {axes.get_title()!r} {axes.get_title(loc='right')!r}"]
    for name in names:
        label, scale, limits = (
            getattr(axes, f"get_{name}{what}")() for what in ("label", "scale", "lim")
        )
        told.append(f"  {name}: {label!r} {scale} {numbers(limits)}")
    for line in axes.lines:
        data = line.get_data_3d() if hasattr(line, "get_data_3d") else line.get_data()
        style = f"{line.get_color()} {line.get_linestyle()} {line.get_drawstyle()} {line.zorder:g}"
        told.append(f"  line {line.get_label()!r} {style}: {columns(np.transpose(data))}")
    for one in axes.patches:
        box = one.get_path().get_extents(one.get_patch_transform()).get_points()
        edge = one.get_edgecolor()
        look = f"{numbers(one.get_facecolor())}, edge {numbers(edge)} {one.get_linestyle()}"
        told.append(f"  patch {one.get_label()!r} {numbers(box)} {look}")
    told += [collection(part) for part in axes.collections]
    return told + [f"  text {one.get_text()!r} {numbers(one.xy)}" for one in axes.texts
                   if hasattr(one, "xy")]  # fmt: skip


def text(figure):
    """All of a figure."""
    legends = [one.get_text() for legend in figure.legends for one in legend.get_texts()]
    told = [f"{figure.get_suptitle()!r} {legends}"]
    return "\n".join(told + [line for axes in figure.axes for line in panel(axes)])
