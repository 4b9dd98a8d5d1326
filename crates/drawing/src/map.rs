//! A map: boxes for hosts, routers and switches, lines for links, with the links' properties beside them.

use model::{Figure, Map, MapKind, MapLink, MapNode};

use crate::layout::Head;
use crate::map_places::{ROW, boxes};
use crate::notes::meet;
use crate::plot::{Rect, Segment};
use crate::svg::{Svg, px};
use crate::text_width::{fit, text_width};
use crate::{Drawing, Sheet, Use, axes, begun, line, text};

/// Draws the map.
pub(crate) fn draw(figure: &Figure, map: &Map, usage: Use<'_>, sheet: Sheet) -> Drawing {
    let width = sheet.layout_width();
    let head = Head::new(figure, sheet);
    let top = head.bottom() + 5.0;
    let boxes = boxes(map, width, top);
    let height = boxes.iter().map(|area| area.bottom).fold(top, f64::max) + 24.0;
    let mut svg = begun(figure, usage, width, height);
    axes::head(&mut svg, &head);
    let ends = |link: &MapLink| Some((boxes.get(link.between[0])?, boxes.get(link.between[1])?));
    let wires: Vec<Segment> = map.links.iter().filter_map(ends).map(|(a, b)| (centre(a), centre(b))).collect();
    wires.iter().for_each(|(from, to)| line(&mut svg, "wire", *from, *to));
    for (node, area) in map.nodes.iter().zip(&boxes) {
        one(&mut svg, node, area);
    }
    for link in &map.links {
        if let Some((a, b)) = ends(link) {
            let own = (centre(a), centre(b));
            let crossed = wires.iter().any(|other| meet(own, *other));
            beside(&mut svg, link, (a, b), width, crossed);
        }
    }
    Drawing { svg: svg.finish(), size: (width, height), plots: Vec::new() }
}

fn centre(area: &Rect) -> (f64, f64) {
    ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0)
}

fn one(svg: &mut Svg<'_>, node: &MapNode, area: &Rect) {
    let (width, height) = (area.right - area.left, area.bottom - area.top);
    // A host has corners, a router is round, a switch is between.
    let (round, word) = match node.kind {
        MapKind::Host => (3.0, "host"),
        MapKind::Router => (height / 2.0, "router"),
        MapKind::Switch => (12.0, "switch"),
    };
    let (x, y, w, h) = (px(area.left), px(area.top), px(width), px(height));
    svg.leaf("rect", &[("class", "box"), ("x", &x), ("y", &y), ("width", &w), ("height", &h), ("rx", &px(round))]);
    let middle = px((area.left + area.right) / 2.0);
    let lines = [word.to_owned()].into_iter().chain(node.lines.iter().cloned());
    text(svg, "panel", &middle, &px(area.top + ROW + 3.0), "middle", &fit(&node.name, 13.0 * 1.15, width - 12.0));
    for (row, content) in (1..).zip(lines) {
        let y = px(area.top + ROW * f64::from(row) + ROW + 3.0);
        text(svg, "tick", &middle, &y, "middle", &fit(&content, 12.5 * 1.1, width - 8.0));
    }
}

/// The properties of a link: beside a vertical one, above and below a horizontal one, and on paper so that wires do not cross them.
fn beside(svg: &mut Svg<'_>, link: &MapLink, (a, b): (&Rect, &Rect), width: f64, crossed: bool) {
    let (from, to) = (centre(a), centre(b));
    let level = (from.1 - to.1).abs() < 1.0;
    // On a ring the diagonals cross in the middle.
    let part = if crossed { 0.34 } else { 0.5 };
    let (x, y) = (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1));
    let widest = link.lines.iter().map(|line| text_width(line, 12.5) * 1.1).fold(0.0, f64::max);
    let upright = (from.0 - to.0).abs() < 1.0;
    let (x, anchor) = match () {
        () if upright && x + 10.0 + widest < width => (x + 10.0, "start"),
        () if upright => (x - 10.0, "end"),
        () => (x, "middle"),
    };
    let count = link.lines.len() as f64;
    // Above a level link two lines, the others below.
    let above = if level { count.min(2.0) } else { 0.0 };
    let first = if level { y - 7.0 - ROW * (above - 1.0) } else { y + 4.5 - ROW * (count - 1.0) / 2.0 };
    if anchor == "middle" && !level && count > 0.0 {
        let (left, top) = (px(x - widest / 2.0 - 4.0), px(first - 13.0));
        let (w, h) = (px(widest + 8.0), px(ROW * count + 2.0));
        svg.leaf("rect", &[("class", "note"), ("x", &left), ("y", &top), ("width", &w), ("height", &h), ("rx", "4")]);
    }
    for (row, content) in link.lines.iter().enumerate() {
        let below = if level && row as f64 >= above { 7.0 } else { 0.0 };
        text(svg, "value", &px(x), &px(first + below + ROW * row as f64), anchor, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_node_that_is_not_there_is_left_out() {
        let node = MapNode { name: "n0".into(), ..MapNode::default() };
        let link = |between| MapLink { between, lines: vec!["MTU 1500".into()] };
        let alone = Map { nodes: vec![node.clone()], links: vec![link([0, 7])] };
        let svg = draw(&Figure::default(), &alone, Use::File, Sheet::new(400.0)).svg;
        assert!(!svg.contains("class=\"wire\"") && svg.contains(">n0<"), "{svg}");
        let both = Map { nodes: vec![node.clone(), node], links: vec![link([0, 1])] };
        let svg = draw(&Figure::default(), &both, Use::File, Sheet::new(400.0)).svg;
        assert!(svg.contains("class=\"wire\"") && svg.contains(">MTU 1500<"), "{svg}");
    }
}
