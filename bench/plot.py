"""Charts of benchmark results as SVG, written by hand: nothing to install."""
from html import escape

COLORS = {"tenon": "#0b6e4f", "onnxruntime": "#8a8d91", "openvino": "#6f8fc0", "mnn": "#c9a45c", "torch": "#c77b6a"}
BAR, GAP, LEFT, WIDTH = 12, 14, 230, 900


def bar_chart(rows):
    """A group of bars per model and number of threads, each as long as its time, as a multiple of Tenon's."""
    groups = {}
    for row in rows:
        if "ms" in row:
            groups.setdefault((row["model"], row["threads"]), {})[row["engine"]] = row["ms"]
    groups = {key: times for key, times in groups.items() if "tenon" in times}
    longest = max((time / times["tenon"] for times in groups.values() for time in times.values()), default=1)
    longest = min(longest, 6)  # what is slower still is cut off and says so
    scale = (WIDTH - LEFT - 150) / longest
    parts, y = [], 46
    for (model, threads), times in groups.items():
        label = model if threads == 1 else f"{model}, {threads} threads"
        height = len(times) * BAR
        parts.append(f'<text x="{LEFT - 8}" y="{y + height / 2 + 4}" text-anchor="end">{escape(label)}</text>')
        for engine, ms in times.items():
            ratio = ms / times["tenon"]
            length = max(min(ratio, longest) * scale, 1)
            note = f"{ms:.4g} ms" + ("" if engine == "tenon" else f", {ratio:.2f} x") + (" →" if ratio > longest else "")
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{COLORS.get(engine, "#555")}"/>')
            parts.append(f'<text x="{LEFT + length + 5:.1f}" y="{y + BAR - 3}" font-size="10">{escape(note)}</text>')
            y += BAR
        y += GAP
    legend, x = [], LEFT
    for engine in dict.fromkeys(engine for times in groups.values() for engine in times):
        legend.append(f'<rect x="{x}" y="14" width="12" height="12" fill="{COLORS.get(engine, "#555")}"/>'
                      f'<text x="{x + 17}" y="24">{escape(engine)}</text>')
        x += 40 + 8 * len(engine)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 8}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(legend + parts) + "\n</svg>\n")
