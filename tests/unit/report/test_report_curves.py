"""Curves of learning and of loads: what they average, mark, leave out and how they are scaled."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from synthetic import panels, training

from escala.errors import EscalaError
from escala.report import curves

pytestmark = pytest.mark.slow


def test_a_curve_is_not_squeezed_by_a_far_level() -> None:
    low, high = curves._limits([-14.3, -14.1], [-14.0, -14.3, -21.1])
    assert -14.4 < low < -14.3 and -14.0 < high < -13.9
    assert curves._limits([-14.3, -14.1], [-16.0, -21.1])[0] < -16.0  # one level at least
    figure = curves.learning_curves(
        [curves.Training(pl.DataFrame({"step": [0, 9], "value": [-14.3, -14.1]}), {"random": -21.1, "hold": -14.0})]
    )
    told = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert told == ["trained", "random (−21.10, below)", "hold (−14.00)"]


def test_runs_that_do_not_end_stand_at_the_worse_edge() -> None:
    points = pl.DataFrame({"step": [0, 9, 18], "value": [3.0, 2.0, None], "seed": [0, 0, 0]})
    for less_is_better in (False, True):
        axes = curves.learning_curve(curves.Training(points, {"sjf": 2.5}, less_is_better=less_is_better)).axes[0]
        (cross,) = [line for line in axes.lines if line.get_marker() == "x"]
        assert list(cross.get_xdata()) == [18] and list(cross.get_ydata()) == [float(less_is_better)]
    points = pl.DataFrame({"line": "one", "step": [10, 20], "seed": 0, "return": [-3.0, None], "slowdown": [3.0, None]})
    levels = pl.DataFrame({"policy": ["sjf"], "return": [-2.0], "slowdown": [2.0]})
    panels = curves.learning_panels(
        points, levels, {"return": "Return", "slowdown": "Slowdown"}, more_is_better=("return",)
    ).axes[:2]
    assert [
        [float(y) for line in axes.lines if line.get_marker() == "x" for y in line.get_ydata()] for axes in panels
    ] == [[0.0], [1.0]]


def test_panels_of_a_wide_range_are_logarithmic_and_mark_greedy_actions() -> None:
    rows = [("one", 10, 0, "sampled", -4.0, 4.0), ("one", 20, 0, "likeliest", -50.0, 5.0)]
    points = pl.DataFrame(rows, schema=["line", "step", "seed", "acting", "return", "slowdown"], orient="row")
    levels = pl.DataFrame({"policy": ["sjf"], "return": [-4.5], "slowdown": [4.5]})
    wide, narrow = curves.learning_panels(points, levels, {"return": "Return", "slowdown": "Slowdown"}).axes[:2]
    assert (wide.get_yscale(), narrow.get_yscale()) == ("symlog", "linear")
    assert [float(tick) for tick in wide.get_yticks()] == [-5.0, -10.0, -20.0, -50.0]
    hollow = [
        line.get_xdata().tolist()
        for line in narrow.lines
        if line.get_markerfacecolor() == "white" and line.get_marker() == "o"
    ]
    assert hollow == [[20]]


def test_only_the_metrics_named_are_logarithmic() -> None:
    table = pl.DataFrame({"policy": "sjf", "load": [10, 40], "mean_slowdown": [1.0, 20.0], "mean_wait_s": [0.0, 9.0]})
    panels = curves.against(table, "load", ["mean_slowdown", "mean_wait_s"], log=("mean_slowdown",)).axes[:2]
    assert [axes.get_yscale() for axes in panels] == ["log", "linear"]
    assert [float(tick) for tick in panels[0].get_yticks()] == [1.0, 2.0, 5.0, 10.0, 20.0]


def test_runs_with_points_of_their_own_are_averaged_at_all_of_them() -> None:
    rows = [(0, 0.0, 0), (10, 1.0, 0), (20, 2.0, 0), (5, 3.0, 1), (15, 5.0, 1), (30, 9.0, 1)]
    mean = curves._over_seeds(pl.DataFrame(rows, schema=["step", "value", "seed"], orient="row"))
    assert mean["step"].to_list() == [5, 10, 15, 20]  # where both are
    assert mean["value"].to_list() == pytest.approx([1.75, 2.5, 3.25, (2.0 + 5.0 + 4.0 / 3.0) / 2.0])
    assert mean["low"].to_list() == [0.5, 1.0, 1.5, 2.0] and mean["high"][:3].to_list() == [3.0, 4.0, 5.0]
    shared = curves._over_seeds(training().points)
    assert (
        shared["value"].to_list() == [-9.0, -8.0, -7.0, -6.0, -5.0]
        and (shared["high"] - shared["low"]).to_list() == [2.0] * 5
    )


def test_panels_leave_out_a_step_at_which_a_seed_did_not_end() -> None:
    left = panels().axes[0]
    lines = {line.get_label(): line for line in left.lines}
    assert list(lines["one"].get_xdata()) == [1000, 4000, 16000] and list(lines["one"].get_ydata()) == [3.5, 4.5, 5.5]
    assert list(lines["two"].get_xdata()) == [1000, 16000] and list(lines["two"].get_ydata()) == [5.0, 7.0]
    gap = lines["two: not every run ends"]
    assert list(gap.get_xdata()) == [4000] and gap.get_marker() == "x" and "one: not every run ends" not in lines
    assert list(lines["rule"].get_ydata()) == [7.0, 7.0] and left.get_ylabel() == "Mean a (1)"


def test_a_learning_curve_marks_where_not_every_run_ended() -> None:
    rows = [(100 * k, None if (k, s) == (2, 1) else 5.0 - k + s, s) for k in range(3) for s in range(2)]
    trained = curves.Training(pl.DataFrame(rows, schema=["step", "value", "seed"], orient="row"), {"rule": 4.0})
    lines = {line.get_label(): line for line in curves.learning_curve(trained).axes[0].lines}
    assert list(lines["trained (mean of 2 seeds; shaded: their range)"].get_xdata()) == [0, 100]  # the last has no mean
    assert list(lines["trained: not every run ends"].get_xdata()) == [200]
    alone = lines["trained, single seeds"]
    assert list(alone.get_xdata()) == [200] and list(alone.get_ydata()) == [3.0]
    whole = curves.learning_curve(curves.Training(trained.points.drop_nulls(), {"rule": 4.0}))
    assert not any("not every run" in str(line.get_label()) for line in whole.axes[0].lines)


def test_a_learning_curve_needs_its_columns() -> None:
    with pytest.raises(EscalaError, match="lacks the column 'value'"):
        curves.Training(pl.DataFrame({"step": [1]}))


def test_a_long_label_of_a_learning_curve_stays_beside_its_axis() -> None:
    """Clear of the legend above, and within the picture."""
    trained = curves.Training(
        training().points, {f"policy {k}": -8.0 + k for k in range(5)}, "Mean slowdown, published list of load 100 %"
    )
    figure = curves.learning_curve(trained)
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    label, legend = axes.yaxis.label.get_window_extent(), axes.get_legend().get_window_extent()
    assert not label.overlaps(legend) and label.y1 <= axes.get_window_extent().y1 + 10
    assert label.y0 >= 0 and label.x0 >= 0
