//! A map: boxes for hosts, routers and switches, lines for links, with the links' properties beside them.

use model::{Figure, Map, MapKind, MapLink, MapNode};

use super::layout::title_size;
use super::plot::Rect;
use super::svg::{Svg, px};
use super::text_width::{fit, text_width, wrap};
use super::{Use, begun, line, text};

const EDGE: f64 = 14.0;
/// Largest width of a box, and the width that a box and the texts of a link beside it need.
const BOX: f64 = 150.0;
const STEP: f64 = 232.0;
/// Height of a line of text, and of the gap between boxes below each other.
const ROW: f64 = 16.0;
const GAP: f64 = 70.0;

/// Draws the map at `width`.
pub(super) fn draw(figure: &Figure, map: &Map, usage: Use, width: f64) -> String {
    let title = wrap(&figure.title, title_size(width) * 1.08, width - 2.0 * EDGE, 3);
    let subtitle = wrap(&figure.subtitle, 12.5, (width - 2.0 * EDGE) / 1.12, 6);
    let top = 46.0 + 21.0 * title.len() as f64 + 17.0 * subtitle.len() as f64;
    let boxes = boxes(map, width, top);
    let height = boxes.iter().map(|area| area.bottom).fold(top, f64::max) + 24.0;
    let mut svg = begun(figure, usage, width, height);
    let (left, size) = (px(EDGE), px(title_size(width)));
    for (row, content) in title.iter().enumerate() {
        let y = px(32.0 + 21.0 * row as f64);
        svg.with_text("text", &[("class", "title"), ("x", left.as_str()), ("y", &y), ("font-size", &size)], content);
    }
    for (row, content) in subtitle.iter().enumerate() {
        let y = 34.0 + 21.0 * title.len() as f64 + 17.0 * row as f64;
        text(&mut svg, "subtitle", &left, &px(y), "start", content);
    }
    let ends = |link: &MapLink| Some((boxes.get(link.between[0])?, boxes.get(link.between[1])?));
    for (a, b) in map.links.iter().filter_map(ends) {
        line(&mut svg, "wire", centre(a), centre(b));
    }
    for (node, area) in map.nodes.iter().zip(&boxes) {
        one(&mut svg, node, area);
    }
    for link in &map.links {
        if let Some((a, b)) = ends(link) {
            beside(&mut svg, link, a, b, width);
        }
    }
    svg.finish()
}

fn centre(area: &Rect) -> (f64, f64) {
    ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0)
}

/// The boxes: a chain of nodes from left to right, in as many rows as it needs and every second one back; any other network in
/// layers by distance from its first node.
fn boxes(map: &Map, width: f64, top: f64) -> Vec<Rect> {
    let tallest = map.nodes.iter().map(|node| node.lines.len()).max().unwrap_or(0) as f64;
    let height = 2.0 * ROW + ROW * tallest + 14.0;
    let room = width - 2.0 * EDGE;
    let chain = chain(map);
    let places: Vec<(usize, usize)> = match &chain {
        Some(order) => {
            let columns = ((room / STEP) as usize).max(1);
            let mut places = vec![(0, 0); map.nodes.len()];
            for (at, node) in order.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                places[*node] = (row, if row % 2 == 0 { column } else { columns - 1 - column });
            }
            places
        }
        None => in_layers(map, ((room / (BOX * 0.8)) as usize).max(1)),
    };
    let columns = |row: usize| places.iter().filter(|place| place.0 == row).map(|place| place.1 + 1).max().unwrap_or(1);
    let chain = chain.is_some();
    let most = (0..map.nodes.len()).map(columns).max().unwrap_or(1);
    places
        .iter()
        .map(|(row, column)| {
            // The rows of a chain share their columns, so that its turns are straight down; a layer is centred.
            let of = if chain { most } else { columns(*row) } as f64;
            let place = room / of;
            let half = (place * if chain && of > 1.0 { 0.3 } else { 0.44 }).min(BOX / 2.0);
            let x = EDGE + place * (*column as f64 + 0.5);
            let top = top + *row as f64 * (height + GAP);
            Rect { left: x - half, right: x + half, top, bottom: top + height }
        })
        .collect()
}

/// The nodes in their order along the links, if these are a single chain through all of them.
fn chain(map: &Map) -> Option<Vec<usize>> {
    let count = map.nodes.len();
    let neighbours = |node: usize| -> Vec<usize> {
        let of = map.links.iter().map(|link| link.between).filter(|between| between.contains(&node));
        of.map(|[a, b]| if a == node { b } else { a }).collect()
    };
    let first = (0..count).find(|node| neighbours(*node).len() <= 1)?;
    let mut order = vec![first];
    while let Some(next) = neighbours(*order.last()?).into_iter().find(|next| *next < count && !order.contains(next)) {
        order.push(next);
    }
    (order.len() == count && map.links.len() + 1 == count && order.iter().all(|node| neighbours(*node).len() <= 2))
        .then_some(order)
}

/// Row and column of each node: by distance from the first one, with at most `most` in a row.
fn in_layers(map: &Map, most: usize) -> Vec<(usize, usize)> {
    let count = map.nodes.len();
    let mut distance: Vec<Option<usize>> = vec![None; count];
    let mut order: Vec<usize> = Vec::new();
    for root in 0..count {
        if distance[root].is_some() {
            continue;
        }
        distance[root] = Some(0);
        let mut next = order.len();
        order.push(root);
        while let Some(node) = order.get(next).copied() {
            next += 1;
            for link in map.links.iter().filter(|link| link.between.contains(&node)) {
                for other in link.between.into_iter().filter(|other| *other < count) {
                    if distance[other].is_none() {
                        distance[other] = distance[node].map(|far| far + 1);
                        order.push(other);
                    }
                }
            }
        }
    }
    let mut places = vec![(0, 0); count];
    let (mut row, mut column, mut layer) = (0, 0, 0);
    order.sort_by_key(|node| distance[*node]);
    for node in order {
        if distance[node] != Some(layer) || column == most {
            row += 1;
            column = 0;
            layer = distance[node].unwrap_or(0);
        }
        places[node] = (row, column);
        column += 1;
    }
    places
}

fn one(svg: &mut Svg, node: &MapNode, area: &Rect) {
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
fn beside(svg: &mut Svg, link: &MapLink, a: &Rect, b: &Rect, width: f64) {
    let (from, to) = (centre(a), centre(b));
    let level = (from.1 - to.1).abs() < 1.0;
    let (x, y) = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
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

    fn map(links: &[[usize; 2]], nodes: usize) -> Map {
        let node = |n: usize| MapNode { name: format!("n{n}"), lines: vec!["10.0.0.1".into()], kind: MapKind::Router };
        let link = |between: &[usize; 2]| MapLink { between: *between, lines: vec!["MTU 1500".into()] };
        Map { nodes: (0..nodes).map(node).collect(), links: links.iter().map(link).collect() }
    }

    #[test]
    fn boxes_never_overlap_and_stay_within_the_width() {
        let chain = map(&[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]], 7);
        let star = map(&[[0, 1], [2, 1], [3, 1], [4, 1], [5, 1]], 6);
        for (map, width) in [(&chain, 400.0), (&chain, 960.0), (&star, 400.0), (&star, 960.0), (&map(&[], 2), 400.0)] {
            let boxes = boxes(map, width, 50.0);
            for (at, one) in boxes.iter().enumerate() {
                assert!(one.left >= 0.0 && one.right <= width, "{one:?}");
                assert!(boxes[..at].iter().all(|other| !other.overlaps(one)), "{boxes:?}");
            }
        }
    }

    #[test]
    fn a_chain_is_one_in_any_order_of_its_links() {
        assert_eq!(chain(&map(&[[2, 0], [1, 2]], 3)), Some(vec![0, 2, 1]));
        assert_eq!(chain(&map(&[[0, 1], [1, 2], [2, 0]], 3)), None);
        assert_eq!(chain(&map(&[[0, 1], [0, 2], [0, 3]], 4)), None);
    }

    #[test]
    fn neighbours_of_a_switch_are_one_layer() {
        let star = map(&[[0, 1], [2, 1], [3, 1]], 4);
        assert_eq!(in_layers(&star, 9), [(0, 0), (1, 0), (2, 0), (2, 1)]);
        // A link to a node that is not there is left out.
        let svg = draw(&Figure::default(), &map(&[[0, 7]], 1), Use::File, 400.0);
        assert!(!svg.contains("class=\"wire\"") && svg.contains(">n0<"), "{svg}");
    }
}
