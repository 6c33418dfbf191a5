//! Plots as SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::Measured;

/// Lines of a plot: a name, and points.
pub(super) type Lines = Vec<(String, Vec<(f64, f64)>)>;

/// What the axes are.
pub(super) struct Axes<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// The rate against the number of threads. Both logarithmic.
pub(super) fn rates(title: &str, measured: &Measured) -> Result<String> {
    let lines = measured.names.iter().enumerate().map(|(place, name)| {
        let points = measured
            .by_threads
            .iter()
            .map(|(threads, samples)| (*threads as f64, samples[place].rate()));
        (name.clone(), points.collect())
    });
    draw(&Axes { title, x: "threads", y: "million operations a second" }, &lines.collect())
}

/// Lines between points, both axes logarithmic.
pub(super) fn draw(axes: &Axes<'_>, lines: &Lines) -> Result<String> {
    let mut svg = String::new();
    draw_into(&mut svg, axes, lines).map_err(|error| anyhow!("{}: {error}", axes.title))?;
    Ok(svg)
}

fn draw_into(
    svg: &mut String,
    axes: &Axes<'_>,
    lines: &Lines,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let bounds = |values: Vec<f64>| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        (least, most)
    };
    let (left, right) = bounds(points().map(|point| point.0).collect());
    let (low, high) = bounds(points().map(|point| point.1).collect());
    let area = SVGBackend::with_string(svg, (800, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(axes.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((left..right).log_scale(), (low / 1.5..high * 2.5).log_scale())?;
    chart.configure_mesh().x_desc(axes.x).y_desc(axes.y).light_line_style(WHITE).draw()?;
    for (place, (name, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(place).to_rgba();
        let dots = points.iter().map(move |point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(dots)?;
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_names_its_lines() {
        let lines = vec![("ours".to_owned(), vec![(1.0, 2.0), (8.0, 16.0)])];
        let svg = draw(&Axes { title: "t", x: "x", y: "y" }, &lines).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("ours"));
    }
}
