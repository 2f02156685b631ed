//! Curves as SVG, for the documentation. The horizontal axis shows sizes; the vertical axis shows a count or
//! a measurement on a logarithmic scale.
//!
//! There is one fixed drawing area, light or dark as the reader prefers. The colours can be distinguished in print. The
//! numbers are also in the text of the picture (`<title>` of each point).

use std::fmt::Write;

/// Some curves.
pub struct Chart {
    /// The title above it.
    pub title: String,
    /// The label of the horizontal axis.
    pub across: String,
    /// The label of the vertical axis.
    pub upwards: String,
    /// Names and points.
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 55.0;
const LIGHT: [&str; 8] =
    ["#1b6ca8", "#c8553d", "#2f8f5b", "#8e5ea2", "#b8860b", "#4d4d4d", "#d6559a", "#00838f"];
const DARK: [&str; 8] =
    ["#6db3e8", "#ff9a80", "#6fd09a", "#c9a0dc", "#e5b94e", "#c4c4c4", "#ff8fc4", "#4fc6d2"];

/// The style sheet: a colour for each curve, for words and for the grid.
fn style() -> String {
    let sheet = |paper: &str, ink: &str, grid: &str, colours: &[&str]| {
        let mut css = format!(
            ".paper {{ fill: {paper}; }} text {{ fill: {ink}; }} .grid {{ stroke: {grid}; }} .tick {{ stroke: {ink}; }}"
        );
        for (number, colour) in colours.iter().enumerate() {
            write!(css, " .c{number} {{ stroke: {colour}; }} circle.c{number} {{ fill: {colour}; }}")
                .expect("writing to a string succeeds");
        }
        css
    };
    format!(
        "{}\n@media (prefers-color-scheme: dark) {{ {} }}",
        sheet("#ffffff", "#1c2230", "#dddddd", &LIGHT),
        sheet("#14171c", "#e8eaee", "#3a414d", &DARK)
    )
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|(_, points)| points).copied();
        let most_x = points().map(|(x, _)| x).fold(1.0, f64::max);
        let least_x = points().map(|(x, _)| x).fold(most_x, f64::min);
        let (low, high) = decades(points().map(|(_, y)| y));
        let x_at = |x: f64| LEFT + (x - least_x) / (most_x - least_x).max(1.0) * (WIDTH - LEFT - RIGHT);
        let y_at = |y: f64| {
            let part = (y.max(10f64.powi(low)).log10() - f64::from(low)) / f64::from(high - low);
            HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <style>\n{}\n</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"16\">{}</text>\n",
            style(),
            self.title
        );
        let mut add = |line: String| writeln!(svg, "{line}").expect("writing to a string succeeds");
        for (factor, decade) in marks(low, high) {
            let y = y_at(f64::from(factor) * 10f64.powi(decade));
            add(format!(
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>",
                WIDTH - RIGHT
            ));
            add(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                in_words(factor, decade)
            ));
        }
        let mut sizes: Vec<i64> = points().map(|(x, _)| x as i64).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut last = f64::MIN;
        for size in sizes {
            let x = x_at(size as f64);
            if x - last >= 22.0 {
                last = x;
                let y = HEIGHT - BOTTOM;
                add(format!(
                    "<line class=\"tick\" x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>",
                    y + 5.0
                ));
                add(format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{size}</text>", y + 20.0));
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        add(format!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 14.0,
            self.across
        ));
        add(format!(
            "<text x=\"18\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {:.1})\">{}</text>",
            HEIGHT / 2.0,
            HEIGHT / 2.0,
            self.upwards
        ));
        for (number, (name, points)) in self.curves.iter().enumerate() {
            let class = format!("c{}", number % LIGHT.len());
            let path: Vec<String> =
                points.iter().map(|&(x, y)| format!("{:.1},{:.1}", x_at(x), y_at(y))).collect();
            add(format!(
                "<polyline class=\"{class}\" points=\"{}\" fill=\"none\" stroke-width=\"2\"/>",
                path.join(" ")
            ));
            for &(x, y) in points {
                add(format!(
                    "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{name}, {x}: {y}</title></circle>",
                    x_at(x),
                    y_at(y)
                ));
            }
            let y = TOP + 20.0 * number as f64 + 10.0;
            let x = WIDTH - RIGHT + 15.0;
            add(format!(
                "<line class=\"{class}\" x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke-width=\"3\"/>",
                x + 20.0
            ));
            add(format!("<text x=\"{}\" y=\"{}\">{name}</text>", x + 26.0, y + 4.0));
        }
        svg + "</svg>\n"
    }
}

/// The powers of ten that enclose these numbers.
fn decades(values: impl Iterator<Item = f64>) -> (i32, i32) {
    let (mut low, mut high) = (f64::MAX, f64::MIN);
    for value in values.filter(|value| *value > 0.0) {
        (low, high) = (low.min(value), high.max(value));
    }
    if low > high {
        return (0, 1);
    }
    let low = low.log10().floor() as i32;
    (low, (high.log10().ceil() as i32).max(low + 1))
}

/// The numbers that have a line: powers of ten, and with few of them also twice and five times each.
fn marks(low: i32, high: i32) -> Vec<(u32, i32)> {
    let factors: &[u32] = if high - low <= 2 { &[1, 2, 5] } else { &[1] };
    let all = (low..high).flat_map(|decade| factors.iter().map(move |&factor| (factor, decade)));
    all.chain([(1, high)]).collect()
}

/// A number as people write it: `0.02`, `5,000`, `10 million`.
fn in_words(factor: u32, decade: i32) -> String {
    match decade {
        ..0 => format!("{:.*}", decade.unsigned_abs() as usize, f64::from(factor) * 10f64.powi(decade)),
        0..=5 => crate::table::thousands(u64::from(factor) * 10u64.pow(decade as u32)),
        6..=8 => format!("{} million", u64::from(factor) * 10u64.pow(decade as u32 - 6)),
        _ => format!("{factor}e{decade}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_in_the_picture() {
        let chart = Chart {
            title: "t".into(),
            across: "threads".into(),
            upwards: "configurations".into(),
            curves: vec![("a".into(), vec![(2.0, 5.0), (3.0, 500.0)]), ("b".into(), vec![(2.0, 0.0)])],
        };
        let svg = chart.svg();
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.contains("<title>a, 3: 500</title>") && svg.contains(">1,000</text>"), "{svg}");
        assert!(svg.contains("prefers-color-scheme: dark"));
        assert_eq!(decades([5.0, 500.0].into_iter()), (0, 3));
        assert_eq!(decades([1.0].into_iter()), (0, 1));
        assert_eq!(decades([].into_iter()), (0, 1));
    }

    #[test]
    fn axes_have_numbers_as_people_write_them() {
        let check = |low, high, expected: &str| {
            let words: Vec<String> =
                marks(low, high).into_iter().map(|(factor, decade)| in_words(factor, decade)).collect();
            assert_eq!(words.join(" "), expected);
        };
        check(0, 3, "1 10 100 1,000");
        check(-3, -2, "0.001 0.002 0.005 0.01");
        check(-1, 1, "0.1 0.2 0.5 1 2 5 10");
        check(4, 8, "10,000 100,000 1 million 10 million 100 million");
    }

    /// The text between two others.
    fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
        let rest = text.split_once(from).unwrap_or_else(|| panic!("no {from} in {text}")).1;
        rest.split_once(to).unwrap_or_else(|| panic!("no {to} after {from}")).0
    }

    /// A chart, read from its picture: the numbers are in the text of the points.
    fn chart_of(svg: &str) -> Chart {
        let middle: Vec<&str> = svg.lines().filter(|line| line.contains("text-anchor=\"middle\"")).collect();
        let label = |line: &str| between(line, "\">", "</text>").to_owned();
        let mut curves: Vec<(String, Vec<(f64, f64)>)> = svg
            .lines()
            .filter(|line| line.starts_with("<text x=\"571\""))
            .map(|line| (label(line), Vec::new()))
            .collect();
        for line in svg.lines().filter(|line| line.starts_with("<circle")) {
            let (name, y) = between(line, "<title>", "</title>").rsplit_once(": ").expect("a value");
            let (name, x) = name.rsplit_once(", ").expect("a size");
            let points = &mut curves.iter_mut().find(|(other, _)| other == name).expect("a curve").1;
            points.push((x.parse().expect("a number"), y.parse().expect("a number")));
        }
        Chart {
            title: between(svg, "font-size=\"16\">", "</text>").to_owned(),
            across: label(middle[middle.len() - 2]),
            upwards: label(middle[middle.len() - 1]),
            curves,
        }
    }

    /// The pictures of the documentation are drawn as here, from the numbers in them.
    #[test]
    fn the_pictures_of_the_documentation_are_up_to_date() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).expect("there are pictures") {
            let path = entry.expect("it can be read").path();
            let is_chart = ["growth-", "bounded-", "diamonds", "loops"]
                .iter()
                .any(|start| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)));
            if !is_chart {
                continue;
            }
            seen += 1;
            let svg = std::fs::read_to_string(&path).expect("it is text");
            assert!(chart_of(&svg).svg() == svg, "{}", path.display());
        }
        assert_eq!(seen, 15);
    }
}
