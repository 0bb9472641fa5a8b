"""Figures: labelled, with units, the same bytes every time, readable on any background, and drawn from the right
numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.image
import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from synthetic import Run, panels, run, training

from escala.errors import EscalaError
from escala.metrics import compare
from escala.metrics import jobs as jm
from escala.report import class_plots, curves, frontier_plots, labels, plots, study_plots, style
from escala.report.quantities import scale

pytestmark = pytest.mark.slow

Runs = dict[str, Run]


def _classes(runs: Runs) -> dict[str, pl.DataFrame]:
    return {n: jm.by_class(jm.slowdown(r.jobs), jm.interarrival_classes(r.jobs)) for n, r in runs.items()}


def _against() -> pl.DataFrame:
    rows = [
        {
            "policy": p,
            "load": x,
            "mean_wait_s": f * x,
            "mean_wait_s_low": f * x - 1,
            "mean_wait_s_high": f * x + 1,
            "mean_stretch": f / x,
        }
        for p, f in (("sjf", 10.0), ("agent", 8.0))
        for x in (0.1, 1.0, 1.9)
    ]
    return pl.DataFrame(rows)


def _days(policies: list[str]) -> pl.DataFrame:
    """Six days of each policy, the last two held out; one of them has no wait to show."""
    schema = {
        "policy": pl.String,
        "day": pl.Int64,
        "held_out": pl.Boolean,
        "waste_j": pl.Float64,
        "mean_wait_s": pl.Float64,
    }
    rows = [
        {
            "policy": p,
            "day": k % 4,
            "held_out": k > 3,
            "waste_j": 1e3 * (k + i),
            "mean_wait_s": None if k == 2 else 9.0 * k,
        }
        for i, p in enumerate(policies)
        for k in range(6)
    ]
    return pl.DataFrame(rows, schema=schema)


def _groups(policies: list[str]) -> pl.DataFrame:
    """Six days of two groups, the last two held out."""
    waste = {p: pl.Series([1e3 * (k + i) for k in range(6)]) for i, p in enumerate(policies)}
    return pl.DataFrame({"group": [1, 2] * 3, "held_out": [False] * 4 + [True] * 2, **waste})


def _boxes(runs: Runs) -> dict[str, pl.DataFrame]:
    return {
        name: jm.boxes_by_class(jm.slowdown(run.jobs), jm.slowdown_classes(jm.slowdown(run.jobs)))
        for name, run in runs.items()
    }


FIGURES: dict[str, Callable[[Runs], Figure]] = {
    "load_over_time": lambda runs: plots.load_over_time({n: r.jobs for n, r in runs.items()}, 16),
    "power_over_time": lambda runs: plots.power_over_time(
        {n: r.nodes for n, r in runs.items()}, {n: r.power for n, r in runs.items()}
    ),
    "energy_by_state": lambda runs: plots.energy_by_state({n: r.summary() for n, r in runs.items()}),
    "frontier": lambda runs: plots.frontier({n: r.summary() for n, r in runs.items()}),
    "distributions": lambda runs: plots.distributions({"wait_s": {n: jm.wait(r.jobs) for n, r in runs.items()}}),
    "learning_curve": lambda runs: curves.learning_curve(training()),
    "learning_curves": lambda runs: curves.learning_curves([training(), training()]),
    "learning_panels": lambda runs: panels(),
    "by_class": lambda runs: class_plots.by_class(_classes(runs), "mean_slowdown", x_label="Class", log=True),
    "boxes": lambda runs: class_plots.boxes(_boxes(runs), "mean_slowdown", x_label="Class"),
    "shares": lambda runs: class_plots.by_class(_classes(runs), "mean_slowdown", x_label="Class", share=True),
    "sums_by_group": lambda runs: study_plots.sums_by_group(_groups(list(runs)), list(runs)),
    "running_means": lambda runs: study_plots.running_means(_days(list(runs)), ("waste_j", "mean_wait_s"), list(runs)),
    "against": lambda runs: curves.against(_against(), "load", ["mean_wait_s", "mean_stretch"], x_label="Offered load"),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (1, 1), (60, 60, 60)], ids=str)
def test_every_figure_for_any_number_of_jobs(name: str, sizes: tuple[int, ...]) -> None:
    figure = FIGURES[name]({f"p{i}": run(n, timeout=100.0 * i) for i, n in enumerate(sizes)})
    root = ET.fromstring(style.inline_svg(figure, "k"))
    assert root.tag.endswith("svg")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_labelled_and_repeats_to_the_byte(name: str, runs: Runs) -> None:
    figure = FIGURES[name](runs)
    assert style.svg(figure) == style.svg(FIGURES[name](runs))
    labels = [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel())]
    assert any(labels)
    assert all(
        axes.get_ylabel() or axes.get_yticklabels() or axes.get_shared_y_axes().get_siblings(axes)[1:]
        for axes in figure.axes
    )


def test_comparison_figure(comparison: pl.DataFrame) -> None:
    figure = curves.changes(comparison)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Energy waste", "Mean wait"]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["rule", "agent"]
    bars = [list(line.get_xdata()) for line in figure.axes[0].lines if list(line.get_ydata()) == [0, 0]]
    assert bars == [pytest.approx([-10.0, -10.0])]


def test_a_far_policy_does_not_squeeze_the_others() -> None:
    """`never` is at 42 times the reference, `rule` a little below it: the bar of `rule` is still seen and no text
    overlaps."""
    metrics = ["waste_j", "energy_j", "transitions", "mean_wait_s", "mean_bounded_slowdown", "mean_stretch"]
    rows = [
        {"policy": policy, "episode": day, "seed": 0, **dict.fromkeys(metrics, factor * (10.0 + day))}
        for day in range(5)
        for policy, factor in (
            ("timeout:0", 1.0),
            ("never", 42.0),
            ("rule", 0.9 + 0.02 * day),
            ("trained agent (argmax)", 1.2),
        )
    ]
    figure = curves.changes(compare.episodes(pl.DataFrame(rows), metrics, reference="timeout:0"))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert len(figure.axes) == 6
    for axes in figure.axes:
        points = {round(float(line.get_xdata()[0]), 1): line for line in axes.lines if line.get_marker() == "o"}
        # 0.9 + 0.02 day, weighted by 10 + day: (10 x .9 + .. + 14 x .98) / 60 = 0.9433
        assert set(points) == {4100.0, -5.7, 20.0}
        low, rule, zero = (axes.transData.transform((x, 0.0))[0] for x in (axes.get_xlim()[0], -5.7, 0.0))
        width = axes.get_window_extent().width
        assert (zero - rule) / width > 0.01 and low < rule
    renderer = canvas.get_renderer()
    texts = [
        t
        for axes in figure.axes
        for t in (axes.title, axes._left_title, axes.xaxis.label, *axes.get_xticklabels())
        if t.get_text()
    ]
    boxes = [t.get_window_extent(renderer) for t in texts]
    assert not [
        (a.get_text(), b.get_text())
        for i, a in enumerate(texts)
        for j, b in enumerate(texts)
        if i < j and boxes[i].overlaps(boxes[j])
    ]


def test_units_are_on_the_axes(runs: Runs) -> None:
    assert FIGURES["power_over_time"](runs).axes[0].get_ylabel() == "Power (kW)"
    assert FIGURES["energy_by_state"](runs).axes[0].get_xlabel() == "Energy (kWh)"
    assert FIGURES["load_over_time"](runs).axes[1].get_xlabel() == "Time (d)"
    assert FIGURES["frontier"](runs).axes[0].get_ylabel() == "Energy (kWh)"


def test_bars_are_the_joules(runs: Runs) -> None:
    summaries = {n: r.summary() for n, r in runs.items()}
    axes = plots.energy_by_state(summaries).axes[0]
    divisor, _ = scale("J", max(float(s["energy_j"]) for s in summaries.values()))
    drawn = np.array([[bar.get_width() for bar in container] for container in axes.containers])
    for i, summary in enumerate(summaries.values()):
        assert drawn[:, i].sum() * divisor == pytest.approx(summary["energy_j"])


def test_areas_are_the_joules() -> None:
    one = run(60, timeout=0.0)
    axes = plots.power_over_time({"p": one.nodes}, {"p": one.power}).axes[0]
    energy = 0.0
    for patch in axes.patches:
        values, edges, baseline = patch.get_data()
        energy += float(((values - baseline) * np.diff(edges)).sum())
    span = one.nodes["to_s"].max() - one.nodes["from_s"].min()
    watt = 1e3 if "kW" in axes.get_ylabel() else 1.0
    assert energy * watt * scale("s", span)[0] == pytest.approx(one.power["joules"].sum(), rel=1e-9)


def test_the_frontier_by_hand() -> None:
    assert plots.non_dominated([(1.0, 5.0), (2.0, 3.0), (3.0, 3.0), (4.0, 1.0), (4.0, 1.0), (1.0, 6.0)]) == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]


def test_labels_lie_apart_though_their_points_do_not() -> None:
    figure = Figure(figsize=(4.0, 3.0))
    axes = figure.subplots()
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    labels.beside(
        axes, [(0.5, 0.5), (0.5, 0.5), (0.51, 0.5), (0.99, 0.99)], ["first", "second", "", "at the edge"], ["k"] * 4
    )
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == ["first", "second", "at the edge"]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert boxes[2].x1 <= axes.bbox.x1 and boxes[2].y1 <= axes.bbox.y1


def test_each_policy_has_its_own_colour_above_its_bound_and_its_name_beside_it() -> None:
    table = pl.DataFrame({"policy": ["timeout:0", "hold:0.1", "oracle"], "stretch": [0.2, 0.3, 0.5],
                          "waste_j": [9e5, 7e5, 6e5], "bound": [5e5, 3e5, 2e5]})  # fmt: skip
    axes = frontier_plots.waste_above_bound(table, "waste_j").axes[0]
    points = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert [line.get_color() for line in points] == [style.policy_colour(k) for k in (0, 0, 1, 1, 2, 2)]
    assert [text.get_text() for text in axes.texts] == ["timeout:0", "hold:0.1", "oracle †"]
    assert axes.get_ylabel() == "Energy waste a day (Wh)" and axes.get_xlabel()


def test_the_shares_of_a_year_make_up_all_of_its_jobs() -> None:
    table = pl.DataFrame({"input": ["a", "a"], "year": ["year 1", "year 2"], "sequential": [0.4, 0.5],
                          "error_of_sequential": [0.5, 0.2], "error_of_others": [0.25, None]})  # fmt: skip
    bars = study_plots.yearly_shares(table).axes[0].patches
    assert [bar.get_height() for bar in bars[::2]] == pytest.approx([20.0, 20.0, 15.0, 45.0])
    assert [bar.get_y() for bar in bars[::2]] == pytest.approx([0.0, 20.0, 40.0, 55.0])


def test_waste_against_stretch_draws_the_least_waste_at_no_more_stretch_and_the_distance_from_it() -> None:
    rows = [("hold", "0", 0.1, 0.0), ("hold", "0.1", 0.2, -0.2), ("hold", "0.03", 0.3, -0.1)]
    rows += [("ppo", "ordered", 0.2, -0.28), ("ppo", "printed", 0.2, 0.5)]
    table = pl.DataFrame(rows, schema=["kind", "mark", "stretch", "waste_vs_t0"], orient="row")
    bars = pl.DataFrame({"against_hold": [0.0, 0.0, 0.125, -0.1, 0.875]}).with_columns(
        against_hold_low=pl.col("against_hold") - 0.05, against_hold_high=pl.col("against_hold") + 0.05
    )
    axes = frontier_plots.waste_against_stretch({"cut": pl.concat([table, bars], how="horizontal")}).axes[0]
    line = next(one for one in axes.lines if one.get_linestyle() == "-")
    assert line.get_ydata().tolist() == pytest.approx([0.0, -20.0, -20.0])
    # of `ordered`: 0.8 of T(0)'s waste is the line's, less 15 and 5 % of it
    (bar,) = axes.collections[0].get_segments()
    assert bar[:, 1].tolist() == pytest.approx([-32.0, -24.0])
    assert {"ordered", "printed (+50 %)"} <= {text.get_text() for text in axes.texts}


def test_exceedance_is_the_share_above() -> None:
    values = np.random.default_rng(0).exponential(100.0, 5000)
    x, share = plots._exceedance(values, 1.0)
    assert x[0] == 1.0 and share[0] == (values > 1.0).mean()
    assert share[-1] == 0.0 and x[-1] == values.max()  # the largest value is not lost
    for at, above in zip(x, share):
        assert above == pytest.approx((values > at).mean())


def test_no_extreme_of_the_queue_is_lost() -> None:
    many = run(4000, gap=20.0)
    from escala.metrics import machine

    line = plots.load_over_time({"p": many.jobs}, 16).axes[1].lines[0]
    assert max(line.get_ydata()) == machine.queue_length(many.jobs)["value"].max()
    assert len(line.get_xdata()) < 2000


def test_numbers_in_the_text_survive_the_inlining(runs: Runs) -> None:
    figure = plots.energy_by_state({n: r.summary() for n, r in runs.items()})
    written = [text.get_text() for text in figure.axes[0].texts]
    svg = style.inline_svg(figure, "k")
    assert all(f">{text}</text>" in svg for text in written)


def test_ink_follows_the_page_and_ids_do_not_collide(runs: Runs) -> None:
    svg = style.inline_svg(FIGURES["frontier"](runs), "f7")
    assert style.INK not in svg and "currentColor" in svg
    ids = [e.get("id") for e in ET.fromstring(svg).iter() if e.get("id")]
    assert ids and all(i.startswith("f7-") for i in ids)


def test_saving(runs: Runs, tmp_path: Path) -> None:
    png, svg = style.save(FIGURES["frontier"](runs), tmp_path / "frontier.v2.png")
    assert png.name == "frontier.v2.png" and svg.name == "frontier.v2.svg"
    assert png.read_bytes().startswith(b"\x89PNG") and ET.parse(svg).getroot().tag.endswith("svg")
    with pytest.raises(EscalaError, match="does not exist"):
        style.save(FIGURES["frontier"](runs), tmp_path / "no" / "x.png")


def test_the_callers_settings_are_left_alone(runs: Runs) -> None:
    before: dict[str, Any] = dict(matplotlib.rcParams)
    FIGURES["frontier"](runs)
    assert dict(matplotlib.rcParams) == before


def test_each_pixel_of_a_frame_is_a_square_of_whole_pixels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (high, 436, 3), dtype=np.uint8) for high in (172, 40)]
    style.save(study_plots.frames(pictures, ["first", "second"]), tmp_path / "frames")
    saved = (matplotlib.image.imread(tmp_path / "frames.png")[:, :, :3] * 255).round().astype(np.uint8)
    assert saved.shape[1] == 2 * 436
    head = (len(saved) - 2 * (172 + 40)) // 2
    for picture, top in zip(pictures, (head, 2 * head + 2 * 172), strict=True):
        assert (saved[top : top + 2 * len(picture)] == picture.repeat(2, axis=0).repeat(2, axis=1)).all()
    wide = rng.integers(0, 256, (10, 1000, 3), dtype=np.uint8)
    style.save(study_plots.frames([wide], [""]), tmp_path / "wide")
    saved = (matplotlib.image.imread(tmp_path / "wide.png")[:, :, :3] * 255).round().astype(np.uint8)
    assert (saved[-10:] == wide).all()
