//! Line charts as SVG.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::engine::EngineKind;

/// One chart of a figure.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// With its unit.
    pub(crate) x: &'a str,
    /// With its unit.
    pub(crate) y: &'a str,
    pub(crate) lines: Vec<Line>,
}

/// The line of one engine. Values are positive, because both axes are logarithmic.
pub(crate) struct Line {
    pub(crate) kind: EngineKind,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Writes charts side by side. Charts without points are left out.
pub(crate) fn write(file: &Path, charts: &[Chart<'_>]) -> Result<()> {
    let charts: Vec<&Chart<'_>> =
        charts.iter().filter(|chart| chart.points().next().is_some()).collect();
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let root = SVGBackend::new(file, (440 * charts.len().max(1) as u32, 320)).into_drawing_area();
    root.fill(&WHITE).map_err(failed)?;
    for (chart, area) in charts.iter().zip(root.split_evenly((1, charts.len().max(1)))) {
        draw(chart, &area)?;
    }
    root.present().map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

impl Chart<'_> {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(|line| line.points.iter().copied())
    }
}

fn draw(chart: &Chart<'_>, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<()> {
    let (x, y) =
        (span(chart.points().map(|point| point.0)), span(chart.points().map(|point| point.1)));
    // Space for the legend.
    let y = y.start..y.end * (y.end / y.start).powf(0.4);
    let mut context = ChartBuilder::on(area)
        .caption(chart.title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(38)
        .y_label_area_size(58)
        .build_cartesian_2d(x.log_scale(), y.log_scale())
        .map_err(failed)?;
    (context
        .configure_mesh()
        .x_desc(chart.x)
        .y_desc(chart.y)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 11)))
    .x_label_formatter(&number)
    .y_label_formatter(&number)
    .draw()
    .map_err(failed)?;
    for line in &chart.lines {
        let color = color(line.kind);
        let points = line.points.clone();
        context
            .draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(3))
            .map_err(failed)?
            .label(line.kind.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    (context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(("sans-serif", 11)))
    .background_style(WHITE.mix(0.8))
    .draw()
    .map_err(failed)
}

/// The range of an axis, slightly larger than that of the values.
fn span(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) =
        values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| (low.min(v), high.max(v)));
    low * 0.8..high * 1.25
}

fn number(value: &f64) -> String {
    match *value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{v}"),
    }
}

fn color(kind: EngineKind) -> RGBColor {
    match kind {
        EngineKind::Louver => RGBColor(0xd5, 0x5e, 0x00),
        EngineKind::Llguidance => RGBColor(0x00, 0x72, 0xb2),
        EngineKind::Xgrammar => RGBColor(0x00, 0x9e, 0x73),
    }
}
