//! Figures -> inline SVG, drawn by `plotters`. What it draws in stand-in colours becomes variables of the page's
//! style sheet, so that a chart follows the reader's light or dark. Nothing here counts.

use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, PathElement,
    RGBColor, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, TextStyle};

use super::escaped;
use crate::outcome::Verdict;

/// How wide a chart is drawn: as wide as it is shown on a telephone, so that its words keep their size there.
pub(super) const WIDTH: u32 = 400;
/// The size of a word. The backend writes a font size that is smaller by 1.24.
const WORDS: f64 = 12.5 * 1.24;
pub(super) const SMALL: f64 = 11.0 * 1.24;
/// The longest label, in characters.
const LABEL: usize = 42;

/// A stand-in for a colour of the style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Words.
    Ink,
    /// Words of less weight.
    Quiet,
    /// Rules, and the ground of a bar.
    Track,
    /// A bar or a line that stands for nothing in particular.
    Mark,
    /// A verdict's own colour.
    Of(Verdict),
}

impl Tone {
    /// The stand-in: a blue so dark that nobody would choose it, numbered.
    pub(super) fn stand_in(self) -> RGBColor {
        let number = match self {
            Self::Ink => 1,
            Self::Quiet => 2,
            Self::Track => 3,
            Self::Mark => 4,
            Self::Of(verdict) => 16 + verdict as u8,
        };
        RGBColor(0, 0, number)
    }

    pub(crate) fn variable(self) -> String {
        match self {
            Self::Ink => "--ink".to_owned(),
            Self::Quiet => "--quiet".to_owned(),
            Self::Track => "--track".to_owned(),
            Self::Mark => "--mark".to_owned(),
            Self::Of(verdict) => format!("--{verdict}"),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        [Self::Ink, Self::Quiet, Self::Track, Self::Mark]
            .into_iter()
            .chain(Verdict::ALL.iter().map(|it| Self::Of(*it)))
    }
}

/// One bar.
#[derive(Debug, Clone)]
pub(in crate::report) struct Bar {
    /// What it stands for.
    pub(in crate::report) label: String,
    /// How long it is.
    pub(in crate::report) count: u64,
    /// What is written at its end.
    pub(in crate::report) said: String,
    /// Its colour.
    pub(in crate::report) tone: Tone,
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn<'a> = Result<
    (),
    DrawingAreaErrorKind<<SVGBackend<'a> as plotters::prelude::DrawingBackend>::ErrorType>,
>;

/// Bars that lie, each under its label; the longest is as long as `whole`, or as the longest count.
pub(super) fn bars(title: &str, bars: &[Bar], whole: Option<u64>) -> String {
    const EACH: i32 = 32;
    let most = whole
        .unwrap_or_else(|| bars.iter().map(|it| it.count).max().unwrap_or(0))
        .max(1);
    let height = EACH * across(bars.len()) + 2;
    let described = described(bars);
    drawn(title, &described, height, |area| {
        for (at, bar) in bars.iter().enumerate() {
            let top = EACH * across(at);
            let label: String = if bar.label.chars().count() > LABEL {
                bar.label
                    .chars()
                    .take(LABEL - 3)
                    .chain("...".chars())
                    .collect()
            } else {
                bar.label.clone()
            };
            words(area, &label, (0, top + 1), WORDS, Tone::Ink, HPos::Left)?;
            words(
                area,
                &bar.said,
                (across_px(WIDTH), top + 1),
                WORDS,
                Tone::Quiet,
                HPos::Right,
            )?;
            fill(
                area,
                (0, top + 18),
                (across_px(WIDTH), top + 25),
                Tone::Track,
            )?;
            let length = length(bar.count, most, WIDTH);
            if length > 0 {
                fill(area, (0, top + 18), (length, top + 25), bar.tone)?;
            }
        }
        Ok(())
    })
}

/// Bars that stand side by side, their labels below: a histogram.
pub(super) fn columns(title: &str, bars: &[Bar]) -> String {
    const HEIGHT: i32 = 190;
    const FOOT: i32 = HEIGHT - 22;
    const HEAD: i32 = 20;
    let most = bars.iter().map(|it| it.count).max().unwrap_or(0).max(1);
    let described = described(bars);
    drawn(title, &described, HEIGHT, |area| {
        let each = across_px(WIDTH) / across(bars.len()).max(1);
        for (at, bar) in bars.iter().enumerate() {
            let left = each * across(at);
            let tall = length(
                bar.count,
                most,
                u32::try_from(FOOT - HEAD).unwrap_or_default(),
            );
            if tall > 0 {
                fill(
                    area,
                    (left + 2, FOOT - tall),
                    (left + each - 2, FOOT),
                    bar.tone,
                )?;
            }
            let middle = left + each / 2;
            if bar.count > 0 {
                words(
                    area,
                    &bar.said,
                    (middle, FOOT - tall - 16),
                    SMALL,
                    Tone::Quiet,
                    HPos::Center,
                )?;
            }
            // Many labels leave little room for each.
            let size = if bars.len() > 7 { SMALL * 0.8 } else { SMALL };
            words(
                area,
                &bar.label,
                (middle, FOOT + 5),
                size,
                Tone::Ink,
                HPos::Center,
            )?;
        }
        fill(area, (0, FOOT), (across_px(WIDTH), FOOT + 1), Tone::Quiet)
    })
}

/// One bar of parts, without words; its legend is the page's affair.
pub(in crate::report) fn parts(title: &str, bars: &[Bar]) -> String {
    const ACROSS: u32 = 1200;
    let whole: u64 = bars.iter().map(|it| it.count).sum::<u64>().max(1);
    let described = described(bars);
    let svg = sized(title, &described, (ACROSS, 36), |area| {
        let mut passed = 0;
        for bar in bars {
            let left = length(passed, whole, ACROSS);
            passed += bar.count;
            let right = length(passed, whole, ACROSS);
            if right > left {
                fill(area, (left, 0), (right, 36), bar.tone)?;
            }
        }
        Ok(())
    });
    svg.replacen("<svg ", "<svg preserveAspectRatio=\"none\" ", 1)
}

/// A line over two shares in percent, and the diagonal it would be if nothing were larger than anything else.
pub(super) fn curve(title: &str, described: &str, points: &[(f64, f64)], below: &str) -> String {
    drawn(title, described, 230, |area| {
        let style = |tone: Tone| words_style(SMALL, tone, HPos::Center);
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_right(14)
            .x_label_area_size(40)
            .y_label_area_size(44)
            .build_cartesian_2d(0.0..100.0, 0.0..100.0)?;
        let percent = |it: &f64| format!("{it:.0} %");
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(6)
            .y_labels(6)
            .max_light_lines(0)
            .bold_line_style(Tone::Track.stand_in())
            .axis_style(Tone::Quiet.stand_in())
            .x_desc(below)
            .axis_desc_style(style(Tone::Quiet))
            .label_style(style(Tone::Ink))
            .x_label_formatter(&percent)
            .y_label_formatter(&percent)
            .draw()?;
        chart.draw_series([PathElement::new(
            vec![(0.0, 0.0), (100.0, 100.0)],
            Tone::Quiet.stand_in(),
        )])?;
        chart.draw_series([PathElement::new(
            points.to_vec(),
            Tone::Mark.stand_in().stroke_width(2),
        )])?;
        Ok(())
    })
}

fn drawn(
    title: &str,
    described: &str,
    height: i32,
    draw: impl FnOnce(&Area) -> Drawn<'static>,
) -> String {
    sized(
        title,
        described,
        (WIDTH, u32::try_from(height).unwrap_or(1)),
        draw,
    )
}

/// Draws, puts the style sheet's variables in place of the stand-ins, and says what the picture shows.
pub(super) fn sized(
    title: &str,
    described: &str,
    size: (u32, u32),
    draw: impl FnOnce(&Area) -> Drawn<'static>,
) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        // The backend writes to memory: there is nothing that could fail.
        let _ = draw(&area).and_then(|()| area.present());
    }
    for tone in Tone::all() {
        let RGBColor(red, green, blue) = tone.stand_in();
        svg = svg.replace(
            &format!("\"#{red:02X}{green:02X}{blue:02X}\""),
            &format!("\"var({})\"", tone.variable()),
        );
    }
    let (_, drawn) = svg.split_once('>').unwrap_or_default();
    format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title><desc>{}</desc>{drawn}",
        size.0,
        size.1,
        escaped(&format!("{title}: {described}")),
        escaped(title),
        escaped(described),
    )
}

/// A chart in words, for who does not see it.
fn described(bars: &[Bar]) -> String {
    let said: Vec<String> = bars
        .iter()
        .map(|bar| format!("{} {}", bar.label, bar.said))
        .collect();
    said.join("; ")
}

pub(super) fn words_style(size: f64, tone: Tone, towards: HPos) -> TextStyle<'static> {
    let colour = tone.stand_in();
    ("sans-serif", size)
        .into_font()
        .color(&colour)
        .pos(Pos::new(towards, VPos::Top))
}

pub(super) fn words(
    area: &Area,
    text: &str,
    at: (i32, i32),
    size: f64,
    tone: Tone,
    towards: HPos,
) -> Drawn<'static> {
    area.draw(&Text::new(
        text.to_owned(),
        at,
        words_style(size, tone, towards),
    ))
}

pub(super) fn fill(area: &Area, from: (i32, i32), to: (i32, i32), tone: Tone) -> Drawn<'static> {
    area.draw(&Rectangle::new([from, to], tone.stand_in().filled()))
}

/// How long a bar is, rounded up: what is there is seen.
fn length(count: u64, most: u64, whole: u32) -> i32 {
    let long = (u128::from(count) * u128::from(whole)).div_ceil(u128::from(most.max(1)));
    i32::try_from(long.min(u128::from(whole))).unwrap_or(i32::MAX)
}

fn across(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn across_px(width: u32) -> i32 {
    i32::try_from(width).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_no_colour_of_its_own_and_says_what_it_shows() {
        let bar = Bar {
            label: "<b>&".to_owned(),
            count: 3,
            said: "3 (30.0 %)".to_owned(),
            tone: Tone::Of(Verdict::Working),
        };
        for svg in [
            bars("Title", std::slice::from_ref(&bar), Some(10)),
            columns("Title", std::slice::from_ref(&bar)),
            parts("Title", std::slice::from_ref(&bar)),
            curve(
                "Title",
                "described",
                &[(0.0, 0.0), (10.0, 60.0), (100.0, 100.0)],
                "below",
            ),
        ] {
            assert!(svg.ends_with("</svg>\n"), "{svg}");
            assert!(
                !svg.contains('#') && !svg.contains("<b>") && !svg.contains("style="),
                "{svg}"
            );
            assert!(
                svg.contains("role=\"img\"") && svg.contains("<title>Title</title>"),
                "{svg}"
            );
        }
        assert!(bars("T", &[bar], Some(10)).contains("var(--working)"));
    }
}
