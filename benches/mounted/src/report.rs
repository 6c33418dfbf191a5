//! Tables in Markdown, and a heat map in SVG.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;

/// Thousands of requests a second.
pub(crate) fn thousands(rate: f64) -> String {
    format!("{:.1}k", rate / 1000.0)
}

pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// A table.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = vec!["---".to_owned(); head.len()];
    [line(&head), line(&rule)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

/// Prints a section, and writes it to its file.
pub(crate) fn write(out: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    print!("{text}");
    std::fs::create_dir_all(out)?;
    let path = out.join(name);
    std::fs::write(&path, text).with_context(|| format!("{path:?}"))
}

/// The cells of a grid: its title, then rows of numbers, the best the darkest.
pub(crate) struct HeatMap<'a> {
    pub(crate) title: &'a str,
    pub(crate) rows: &'a [usize],
    pub(crate) columns: &'a [usize],
    /// Row by row.
    pub(crate) values: Vec<f64>,
}

const CELL: usize = 70;
const MARGIN: usize = 60;

/// Several grids side by side. Each has its own scale: from its worst value to its best.
pub(crate) fn heat_maps(maps: &[HeatMap<'_>]) -> String {
    let width = |map: &HeatMap<'_>| MARGIN + map.columns.len() * CELL + 20;
    let height = maps.iter().map(|map| map.rows.len()).max().unwrap_or(0) * CELL + 2 * MARGIN;
    let all: usize = maps.iter().map(width).sum();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut left = 0;
    for map in maps {
        draw(&mut svg, map, left);
        left += width(map);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, map: &HeatMap<'_>, left: usize) {
    let (least, most) = map
        .values
        .iter()
        .fold((f64::INFINITY, 0f64), |(least, most), &value| (least.min(value), most.max(value)));
    let mut text = |x: usize, y: usize, text: &str| {
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{text}</text>");
    };
    let middle = left + MARGIN + map.columns.len() * CELL / 2;
    text(middle, 18, map.title);
    text(middle, 34, "handlers");
    text(left + 28, MARGIN - 6, "readers");
    for (column, number) in map.columns.iter().enumerate() {
        text(left + MARGIN + column * CELL + CELL / 2, MARGIN - 6, &number.to_string());
    }
    for (row, number) in map.rows.iter().enumerate() {
        text(left + 40, MARGIN + row * CELL + CELL / 2 + 4, &number.to_string());
    }
    for (at, &value) in map.values.iter().enumerate() {
        let (row, column) = (at / map.columns.len(), at % map.columns.len());
        let (x, y) = (left + MARGIN + column * CELL, MARGIN + row * CELL);
        let share = if most > least { (value - least) / (most - least) } else { 1.0 };
        let light = 95.0 - 55.0 * share;
        let ink = if share > 0.6 { "white" } else { "black" };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" \
             fill=\"hsl(210,60%,{light:.0}%)\" stroke=\"white\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{ink}\">{}</text>",
            x + CELL / 2,
            y + CELL / 2 + 4,
            thousands(value)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_head_and_a_line_for_each_row() {
        let rows = vec![vec!["a".into(), thousands(1234.0)], vec!["b".into(), ratio(1.5)]];
        assert_eq!(
            table(&["x", "y"], &rows),
            "| x | y |\n| --- | --- |\n| a | 1.2k |\n| b | 1.50 |\n"
        );
    }

    #[test]
    fn a_heat_map_shows_every_value() {
        let map = HeatMap {
            title: "t",
            rows: &[1, 2],
            columns: &[1, 2],
            values: vec![1e3, 2e3, 3e3, 4e3],
        };
        let svg = heat_maps(&[map]);
        for value in ["1.0k", "2.0k", "3.0k", "4.0k"] {
            assert!(svg.contains(value), "{svg}");
        }
        assert!(svg.ends_with("</svg>\n"));
    }
}
