//! Where the nodes of a map are.

use model::Map;

use crate::plot::Rect;

/// Margin of the map.
const EDGE: f64 = 14.0;
/// Largest width of a box, and the width that a box and the texts of a link beside it need.
const BOX: f64 = 150.0;
const STEP: f64 = 232.0;
/// Height of a line of text, and of the gap between boxes below each other.
pub(crate) const ROW: f64 = 16.0;
const GAP: f64 = 70.0;

/// The boxes: a chain of nodes from left to right, in as many rows as it needs and every second one back; a tree in layers by distance
/// from its first node; a network with circles on a ring.
pub(crate) fn boxes(map: &Map, width: f64, top: f64) -> Vec<Rect> {
    let tallest = map.nodes.iter().map(|node| node.lines.len()).max().unwrap_or(0) as f64;
    let height = 2.0 * ROW + ROW * tallest + 14.0;
    let room = width - 2.0 * EDGE;
    if map.links.len() >= map.nodes.len() {
        return on_ring(map, width, top, height);
    }
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

/// Nodes with several links on a ring, the others outside beside their neighbour.
fn on_ring(map: &Map, width: f64, top: f64, height: f64) -> Vec<Rect> {
    let links = |node: usize| map.links.iter().filter(move |link| link.between.contains(&node));
    let inner: Vec<usize> = (0..map.nodes.len()).filter(|node| links(*node).count() != 1).collect();
    // Each leaf is beside the first node of its link that is on the ring.
    let parent = |node: usize| links(node).flat_map(|link| link.between).find(|other| inner.contains(other));
    let half = ((width - 2.0 * EDGE) * 0.11).min(BOX / 2.0);
    let room = (width - 2.0 * EDGE - 2.0 * half) / 2.0;
    let tall = (room * 0.62).max(3.0 * height);
    let centre = (width / 2.0, top + tall + height / 2.0);
    let step = std::f64::consts::TAU / inner.len().max(1) as f64;
    (0..map.nodes.len())
        .map(|node| {
            let at = |node: usize| inner.iter().position(|other| *other == node);
            let of = parent(node).unwrap_or(node);
            // Four nodes are at the corners.
            let angle = step * (at(node).or(at(of)).unwrap_or(0) as f64 + 0.5) + std::f64::consts::PI;
            let beside: Vec<usize> =
                (0..map.nodes.len()).filter(|leaf| at(*leaf).is_none() && parent(*leaf) == Some(of)).collect();
            let (share, angle) = match beside.iter().position(|leaf| *leaf == node) {
                None => (0.56, angle),
                Some(place) => {
                    let spread = (place as f64 - (beside.len() as f64 - 1.0) / 2.0) * step / beside.len() as f64;
                    (1.0, angle + spread)
                }
            };
            // A leaf is as far out as the room allows; straight above the centre there is less of it.
            let (x, y) = (centre.0 + angle.cos() * room * share * 1.2, centre.1 + angle.sin() * tall * share * 1.2);
            let (x, y) = (x.clamp(EDGE + half, width - EDGE - half), y.clamp(centre.1 - tall, centre.1 + tall));
            Rect { left: x - half, right: x + half, top: y - height / 2.0, bottom: y + height / 2.0 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::{MapKind, MapLink, MapNode};

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
        let mesh: &[[usize; 2]] = &[[0, 4], [1, 5], [2, 6], [3, 7], [4, 5], [4, 6], [4, 7], [5, 6], [5, 7], [6, 7]];
        let mesh = map(mesh, 8);
        for (map, width) in [
            (&chain, 400.0),
            (&chain, 960.0),
            (&star, 400.0),
            (&star, 960.0),
            (&mesh, 400.0),
            (&mesh, 960.0),
            (&map(&[], 2), 400.0),
        ] {
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
    }
}
