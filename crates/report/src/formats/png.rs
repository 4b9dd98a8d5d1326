//! Figures as PNG: the SVG with outlines in place of texts, rasterised.

use drawing::{Sheet, Use, draw, images};
use model::Figure;
use resvg::tiny_skia::{ColorU8, Pixmap, PixmapPaint, Transform};
use resvg::usvg::{Options, Tree};

use crate::glyphs::NotoSans;
use crate::{Piece, ReportError, View};

/// The largest width, pixels; larger images would take gigabytes.
const MAX_WIDTH: u32 = 10_000;

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    let figures = view.figures("png")?;
    figures.iter().map(|figure| piece(figure, view.sheet())).collect()
}

/// A figure as a file.
pub(super) fn piece(figure: &Figure, sheet: Sheet) -> Result<Piece, ReportError> {
    Ok(Piece::new(&figure.id, "png", pixels(figure, sheet)?))
}

fn pixels(figure: &Figure, sheet: Sheet) -> Result<Vec<u8>, ReportError> {
    let width = sheet.width as u32;
    let fail = |why: String| ReportError::Raster { figure: figure.id.clone(), width, why };
    if !(1..=MAX_WIDTH).contains(&width) {
        return Err(fail(format!("the width must be 1 to {MAX_WIDTH}")));
    }
    let tree = parse(&draw(figure, Use::Picture(&NotoSans), sheet).svg).map_err(|error| fail(error.to_string()))?;
    let scale = width as f32 / tree.size().width();
    let height = (tree.size().height() * scale).round().max(1.0) as u32;
    let mut pixmap = Pixmap::new(width, height).ok_or_else(|| fail("not enough memory for the pixels".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    // The renderer is built without images and texts.
    for (place, image) in images(figure, sheet) {
        let [columns, rows] = [image.width, image.pixels.len() / image.width].map(|pixels| pixels as u32);
        let Some(mut pixels) = Pixmap::new(columns, rows) else { continue };
        for (pixel, colour) in pixels.pixels_mut().iter_mut().zip(&image.pixels) {
            if let Some([red, green, blue]) = *colour {
                *pixel = ColorU8::from_rgba(red, green, blue, u8::MAX).premultiply();
            }
        }
        let [x, y] = [(place.right - place.left, columns), (place.bottom - place.top, rows)]
            .map(|(length, pixels)| length as f32 * scale / pixels as f32);
        let at = Transform::from_row(x, 0.0, 0.0, y, place.left as f32 * scale, place.top as f32 * scale);
        pixmap.draw_pixmap(0, 0, pixels.as_ref(), &PixmapPaint::default(), at, None);
    }
    pixmap.encode_png().map_err(|error| fail(error.to_string()))
}

fn parse(svg: &str) -> Result<Tree, resvg::usvg::Error> {
    Tree::from_str(svg, &Options::default())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use model::{Axis, Mark, Matrix, MatrixCell, Point, Scale, Series};
    use proptest::prelude::*;

    use super::*;
    use crate::sample;
    use drawing::{NARROW, WIDTH};

    #[test]
    fn every_figure_is_well_formed_and_free_of_broken_numbers() {
        for (what, runs) in sample::gallery() {
            for figure in crate::figures(&runs) {
                let sheet = |width: f64| Sheet::new(width);
                let svg = draw(&figure, Use::Picture(&NotoSans), sheet(WIDTH)).svg;
                let tree = parse(&svg).unwrap_or_else(|error| panic!("{what} {}: {error}", figure.id));
                assert!(tree.size().height() > 300.0);
                assert!(!svg.contains("<text"), "{what} {}: {svg}", figure.id);
                let file = draw(&figure, Use::File, sheet(WIDTH)).svg;
                let page = draw(&figure, Use::Page, Sheet { is_bare: true, ..sheet(NARROW) }).svg;
                for text in [svg, file, page] {
                    assert!(
                        !text.contains("NaN") && !text.contains("inf\"") && !text.contains("inf "),
                        "{what}: {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn text_and_lines_are_drawn_at_the_requested_size() {
        let runs = [sample::curve()];
        let pieces = render(&View { figure: Some("throughput"), pixels: Some(800), ..View::new(&runs) }).unwrap();
        assert_eq!(pieces.len(), 1);
        let image = Pixmap::decode_png(&pieces[0].bytes).unwrap();
        assert_eq!(image.width(), 800);
        let tall = image.height();
        assert!((400..700).contains(&tall), "{tall}");
        let dark = |rows: std::ops::Range<u32>| {
            let ink = |(x, y)| image.pixel(x, y).is_some_and(|p| p.red() < 128);
            rows.flat_map(|y| (0..800).map(move |x| (x, y))).filter(|at| ink(*at)).count()
        };
        // The title is in the first 40 pixels; without a font there would be none.
        assert!(dark(0..40) > 100, "{}", dark(0..40));
    }

    #[test]
    fn a_matrix_of_many_hosts_has_its_pixels() {
        let names: Vec<String> = (0..200).map(|host| format!("n{host}")).collect();
        let of = |(row, column): (usize, usize)| MatrixCell {
            row,
            column,
            value: (row + column) as f64,
            ..MatrixCell::default()
        };
        let pairs = (0..200).flat_map(|row| (0..200).map(move |column| (row, column)));
        let cells = pairs.filter(|(row, column)| row != column).map(of).collect();
        let matrix = Some(Matrix { cells, ..Matrix::default() });
        let figure =
            Figure { x: Axis::names("to", &names), y: Axis::names("from", &names), matrix, ..Figure::default() };
        let image = Pixmap::decode_png(&pixels(&figure, Sheet::new(600.0)).unwrap()).unwrap();
        let (place, _) = images(&figure, Sheet::new(600.0)).remove(0);
        let at = |x: f64, y: f64| {
            let x = place.left + x * (place.right - place.left);
            let y = place.top + y * (place.bottom - place.top);
            image.pixel(x as u32, y as u32).unwrap().red()
        };
        // Higher values are darker; the diagonal is empty.
        assert!(at(0.3, 0.1) > at(0.5, 0.3) && at(0.5, 0.3) > at(0.95, 0.9), "{} {}", at(0.3, 0.1), at(0.95, 0.9));
        assert_eq!(at(0.5025, 0.5025), 255);
        // The SVG has the same pixels as a file within it.
        let svg = draw(&figure, Use::File, Sheet::new(600.0)).svg;
        let data = svg.split_once("base64,").unwrap().1.split_once('"').unwrap().0;
        let within = Pixmap::decode_png(&STANDARD.decode(data).unwrap()).unwrap();
        assert_eq!((within.width(), within.height()), (200, 200));
        let red = |x, y| within.pixel(x, y).map(|pixel| (pixel.red(), pixel.alpha())).unwrap();
        assert!(red(60, 20) > red(100, 60) && red(100, 60) > red(190, 180), "higher values are darker");
        assert_eq!(red(100, 100).1, 0, "the diagonal is empty");
    }

    #[test]
    fn texts_are_at_least_11_pixels_high_at_a_width_of_400() {
        let rules = drawing::theme::LIGHT.rules("");
        let sizes = rules.split("font-size:").skip(1).filter_map(|rest| rest.split("px").next()?.parse::<f64>().ok());
        let smallest = sizes.fold(f64::INFINITY, f64::min);
        for (what, runs) in sample::gallery() {
            for figure in crate::figures(&runs) {
                let tree = parse(&draw(&figure, Use::File, Sheet::new(400.0)).svg).unwrap();
                let scale = 400.0 / f64::from(tree.size().width());
                assert!(smallest * scale >= 11.0, "{what} {}: {smallest} units at {scale}", figure.id);
            }
        }
        // A picture of this width has the same layout, and no text leaves it.
        let runs = [sample::planned()];
        let image = &render(&View { pixels: Some(400), ..View::new(&runs) }).unwrap()[0];
        let image = Pixmap::decode_png(&image.bytes).unwrap();
        let white = |x: u32| (0..image.height()).all(|y| image.pixel(x, y).is_some_and(|p| p.red() > 200));
        assert!(image.width() == 400 && white(399) && white(0));
    }

    #[test]
    fn an_unknown_figure_is_refused_with_the_available_ones() {
        let runs = [sample::curve()];
        let error = render(&View { figure: Some("histogram"), ..View::new(&runs) }).unwrap_err().to_string();
        assert!(error.contains("throughput, saturation, signature"), "{error}");
        assert!(render(&View { pixels: Some(0), ..View::new(&runs) }).is_err());
    }

    fn axis(unit: &str, log: bool) -> Axis {
        Axis::new("any", unit, if log { Scale::Log } else { Scale::Linear })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_figure_can_be_drawn(
            points in prop::collection::vec((any::<f64>(), any::<f64>(), any::<Option<f64>>(), any::<Option<f64>>()), 0..40),
            tame in prop::collection::vec((1.0..1e9f64, -10.0..1e12f64), 0..40),
            logs in any::<(bool, bool)>(),
            text in any::<String>(),
        ) {
            let wild = points.iter().map(|(x, y, low, high)| Point { x: *x, y: *y, low: *low, high: *high });
            let tame = tame.iter().map(|(x, y)| Point { x: *x, y: *y, low: Some(y - 3.0), high: Some(y + 3.0) });
            let points: Vec<Point> = wild.chain(tame).collect();
            let marks = points.iter().take(5).map(|p| Mark { x: p.x, y: p.y, label: text.clone() }).collect();
            let series = vec![Series { name: text.clone(), points, ..Series::default() }];
            let (x, y) = (axis("B", logs.0), axis("bit/s", logs.1));
            let figure = Figure { id: "any".into(), title: text.clone(), subtitle: text, x, y, series, marks, ..Figure::default() };
            for usage in [Use::File, Use::Picture(&NotoSans), Use::Page] {
                let svg = draw(&figure, usage, Sheet::new(400.0)).svg;
                let svg = svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", usize::from(matches!(usage, Use::Page)));
                prop_assert!(parse(&svg).is_ok(), "{}", svg);
                let geometry = svg.split("d=\"").skip(1).filter_map(|rest| rest.split('"').next());
                for path in geometry {
                    prop_assert!(!path.contains("NaN") && !path.contains("inf"), "{}", path);
                }
            }
        }
    }
}
