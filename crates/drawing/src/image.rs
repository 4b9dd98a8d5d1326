//! The image of a large matrix.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Crc;
use flate2::write::ZlibEncoder;

/// An image of few colours: the pixels row by row; none for paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels in a row.
    pub width: usize,
    /// The red, green and blue of each pixel.
    pub pixels: Vec<Option<[u8; 3]>>,
}

impl Image {
    /// The most colours.
    pub(crate) const COLOURS: u8 = 254;

    /// A PNG file with a palette (W3C, "Portable Network Graphics", third edition); none if it has too many pixels or colours.
    pub(crate) fn png(&self) -> Option<Vec<u8>> {
        let mut palette: BTreeMap<[u8; 3], u8> = BTreeMap::new();
        for colour in self.pixels.iter().flatten() {
            let next = u8::try_from(palette.len() + 1).ok();
            if !palette.contains_key(colour) {
                palette.insert(*colour, next?);
            }
        }
        let mut colours: Vec<([u8; 3], u8)> = palette.iter().map(|(colour, number)| (*colour, *number)).collect();
        colours.sort_by_key(|(_, number)| *number);
        let [width, height] = [self.width, self.pixels.len() / self.width.max(1)].map(|size| u32::try_from(size).ok());
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let depth_and_palette = [8, 3, 0, 0, 0];
        chunk(&mut file, *b"IHDR", &[&width?.to_be_bytes()[..], &height?.to_be_bytes(), &depth_and_palette].concat())?;
        // The first colour is transparent.
        let colours = colours.into_iter().flat_map(|(colour, _)| colour);
        chunk(&mut file, *b"PLTE", &[0, 0, 0].into_iter().chain(colours).collect::<Vec<u8>>())?;
        chunk(&mut file, *b"tRNS", &[0])?;
        let number = |pixel: &Option<[u8; 3]>| pixel.and_then(|colour| palette.get(&colour).copied()).unwrap_or(0);
        let mut packer = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        for row in self.pixels.chunks(self.width.max(1)) {
            let unfiltered = [0];
            packer.write_all(&unfiltered).ok()?;
            packer.write_all(&row.iter().map(number).collect::<Vec<u8>>()).ok()?;
        }
        chunk(&mut file, *b"IDAT", &packer.finish().ok()?)?;
        chunk(&mut file, *b"IEND", &[])?;
        Some(file)
    }
}

/// Appends a chunk with its length and its checksum.
fn chunk(file: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> Option<()> {
    let mut checksum = Crc::new();
    checksum.update(&name);
    checksum.update(data);
    file.extend_from_slice(&u32::try_from(data.len()).ok()?.to_be_bytes());
    file.extend_from_slice(&name);
    file.extend_from_slice(data);
    file.extend_from_slice(&checksum.sum().to_be_bytes());
    Some(())
}
