//! Curves as SVG, for the documentation. The horizontal axis shows sizes; the vertical axis shows a count or
//! a measurement on a logarithmic scale.
//!
//! There is one fixed drawing area. The colours can be distinguished in print. The numbers are also in the
//! text of the picture (`<title>` of each point).

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
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 55.0;
const COLOURS: [&str; 8] =
    ["#1b6ca8", "#c8553d", "#2f8f5b", "#8e5ea2", "#b8860b", "#4d4d4d", "#d6559a", "#00838f"];

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
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"16\">{}</text>\n",
            self.title
        );
        let mut add = |line: String| writeln!(svg, "{line}").expect("writing to a string succeeds");
        for decade in low..=high {
            let y = y_at(10f64.powi(decade));
            add(format!(
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>",
                WIDTH - RIGHT
            ));
            add(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                power(decade)
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
                    "<line x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#555555\"/>",
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
            let colour = COLOURS[number % COLOURS.len()];
            let path: Vec<String> =
                points.iter().map(|&(x, y)| format!("{:.1},{:.1}", x_at(x), y_at(y))).collect();
            add(format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                path.join(" ")
            ));
            for &(x, y) in points {
                add(format!(
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{name}, {x}: {y}</title></circle>",
                    x_at(x),
                    y_at(y)
                ));
            }
            let y = TOP + 20.0 * number as f64 + 10.0;
            let x = WIDTH - RIGHT + 15.0;
            add(format!(
                "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"3\"/>",
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

fn power(decade: i32) -> String {
    match decade {
        0..=6 => crate::table::thousands(10u64.pow(decade as u32)),
        _ => format!("1e{decade}"),
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
        assert_eq!(decades([5.0, 500.0].into_iter()), (0, 3));
        assert_eq!(decades([1.0].into_iter()), (0, 1));
        assert_eq!(decades([].into_iter()), (0, 1));
    }
}
