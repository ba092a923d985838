//! Lines over time -> inline SVG: shares with their intervals, joined only where they may be, and a rule where something
//! breaks. What may be joined, and what breaks, is the caller's to say.

use plotters::prelude::{ChartBuilder, Circle, PathElement, Polygon};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::chart::{SMALL, Tone, WIDTH, sized, words_style};

/// How tall a plot is, in pixels.
const HEIGHT: u32 = 200;

/// How strong the ground of an interval is.
const GROUND: f64 = 0.22;

/// Dashes of a rule.
const DASHES: i32 = 18;

/// Dates on the time axis.
const DATES: usize = 4;

/// A share at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Seconds since the Unix epoch.
    pub(crate) at: i64,
    /// In percent.
    pub(crate) share: f64,
    /// The ends of its interval, in percent, where it is drawn.
    pub(crate) interval: Option<(f64, f64)>,
}

/// What is drawn in one colour.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// The colour.
    pub(crate) tone: Tone,
    /// Points that are joined among themselves.
    pub(crate) stretches: Vec<Vec<Point>>,
}

/// Shares over time.
#[derive(Debug, Clone)]
pub(crate) struct Plot<'a> {
    /// What it shows.
    pub(crate) title: &'a str,
    /// The same in words, for who does not see it.
    pub(crate) described: &'a str,
    /// What is drawn, what comes later over what comes before.
    pub(crate) curves: Vec<Curve>,
    /// Where something breaks, in seconds since the Unix epoch.
    pub(crate) breaks: &'a [i64],
    /// How an instant is written on the axis.
    pub(crate) date: fn(i64) -> String,
}

impl Plot<'_> {
    /// The picture.
    #[must_use]
    pub(crate) fn svg(&self) -> String {
        let points = || {
            self.curves
                .iter()
                .flat_map(|curve| curve.stretches.iter().flatten())
        };
        let (first, last) = (
            points().map(|it| it.at).min().unwrap_or(0),
            points().map(|it| it.at).max().unwrap_or(0),
        );
        // In days: an axis of whole seconds is more than plotters can divide.
        let x = |at: i64| days(at - first);
        // A single point stands in the middle.
        let margin = (days(last - first) / 40.0).max(0.02);
        let top = points().map(|it| it.interval.map_or(it.share, |(_, high)| high));
        let top = nice_top(top.fold(0.0, f64::max));
        sized(self.title, self.described, (WIDTH, HEIGHT), |area| {
            let style = |tone: Tone| words_style(SMALL, tone, HPos::Center);
            let mut chart = ChartBuilder::on(area)
                .margin_top(8)
                .margin_right(18)
                .x_label_area_size(26)
                .y_label_area_size(46)
                .build_cartesian_2d(-margin..days(last - first) + margin, 0.0..top)?;
            let percent = |it: &f64| {
                if top < 5.0 {
                    format!("{it:.1} %")
                } else {
                    format!("{it:.0} %")
                }
            };
            let date = |it: &f64| (self.date)(first + seconds(*it));
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_labels(DATES)
                .y_labels(5)
                .max_light_lines(0)
                .bold_line_style(Tone::Track.stand_in())
                .axis_style(Tone::Quiet.stand_in())
                .label_style(style(Tone::Ink))
                .x_label_formatter(&date)
                .y_label_formatter(&percent)
                .draw()?;
            for at in self.breaks {
                let dashes = (0..DASHES).map(|dash| {
                    let from = top * f64::from(dash) / f64::from(DASHES);
                    let to = from + top / f64::from(2 * DASHES);
                    PathElement::new(vec![(x(*at), from), (x(*at), to)], Tone::Quiet.stand_in())
                });
                chart.draw_series(dashes)?;
            }
            for curve in &self.curves {
                let colour = curve.tone.stand_in();
                for stretch in &curve.stretches {
                    let ground = ground(stretch, x);
                    if ground.len() > 3 {
                        chart.draw_series([Polygon::new(ground, colour.mix(GROUND))])?;
                    }
                    let line: Vec<(f64, f64)> =
                        stretch.iter().map(|it| (x(it.at), it.share)).collect();
                    if let [alone] = stretch.as_slice() {
                        if let Some((low, high)) = alone.interval {
                            let bar = vec![(x(alone.at), low), (x(alone.at), high)];
                            chart.draw_series([PathElement::new(
                                bar,
                                colour.mix(0.5).stroke_width(3),
                            )])?;
                        }
                        chart.draw_series([Circle::new(
                            (x(alone.at), alone.share),
                            2,
                            colour.filled(),
                        )])?;
                    } else {
                        chart.draw_series([PathElement::new(line, colour.stroke_width(2))])?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// The outline of a stretch's intervals; nothing where one has none.
fn ground(stretch: &[Point], x: impl Fn(i64) -> f64) -> Vec<(f64, f64)> {
    let highs = stretch.iter().map(|it| Some((x(it.at), it.interval?.1)));
    let lows = stretch
        .iter()
        .rev()
        .map(|it| Some((x(it.at), it.interval?.0)));
    highs.chain(lows).collect::<Option<_>>().unwrap_or_default()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a series is shorter than 2^52 seconds"
)]
const fn days(seconds: i64) -> f64 {
    seconds as f64 / 86_400.0
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole seconds are enough for a date"
)]
const fn seconds(days: f64) -> i64 {
    (days * 86_400.0) as i64
}

/// A round number above the highest point.
fn nice_top(highest: f64) -> f64 {
    [1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 80.0]
        .into_iter()
        .find(|it| highest <= *it)
        .unwrap_or(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Verdict;

    fn point(at: i64, share: f64) -> Point {
        Point {
            at,
            share,
            interval: Some((share - 2.0, share + 2.0)),
        }
    }

    #[test]
    fn what_may_not_be_joined_is_not() {
        let plot = |stretches: Vec<Vec<Point>>, breaks: &[i64]| {
            Plot {
                title: "Working",
                described: "a share",
                curves: vec![Curve {
                    tone: Tone::Of(Verdict::Working),
                    stretches,
                }],
                breaks,
                date: |it| it.to_string(),
            }
            .svg()
        };
        let lines = |svg: &str| svg.matches("stroke=\"var(--working)\"").count();
        let points = [50.0, 52.0, 40.0, 41.0].map(|share| point(seconds(share), share));
        let joined = plot(vec![points.to_vec()], &[]);
        let apart = plot(
            vec![points[..2].to_vec(), points[2..].to_vec()],
            &[points[2].at],
        );
        assert_eq!((lines(&joined), lines(&apart)), (1, 2), "{apart}");
        assert!(!apart.contains('#') && apart.contains("var(--track)"));
        let alone = plot(vec![vec![points[0]]], &[]);
        assert!(alone.contains("<circle") && alone.ends_with("</svg>\n"));
        assert!(plot(Vec::new(), &[]).ends_with("</svg>\n"));
    }
}
