//! Sections of an ELF file: as much as is needed to read a stack's description, without libelf.

/// The contents of section `name` of a 64-bit little-endian ELF file for BPF; the error is a phrase for the user.
pub(crate) fn section<'a>(file: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, &'static str> {
    const CUT: &str = "the file is truncated";
    // The header (ELF-64 object file format): class and byte order, machine, offset, size and number of section
    // headers.
    if file.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) || number(file, 18, 2) != Some(EM_BPF) {
        return Err("it is not a little-endian BPF object");
    }
    let field = |at, bytes| number(file, at, bytes).ok_or(CUT);
    let (headers, size, count, names) = (field(40, 8)?, field(58, 2)?, field(60, 2)?, field(62, 2)?);
    let header = |index: usize| {
        let start = headers.checked_add(index.checked_mul(size)?)?;
        file.get(start..start.checked_add(64)?)
    };
    let contents = |header: &[u8]| {
        let (start, bytes) = (number(header, 24, 8)?, number(header, 32, 8)?);
        file.get(start..start.checked_add(bytes)?)
    };
    let names = header(names).and_then(contents).ok_or(CUT)?;
    for index in 0..count {
        let header = header(index).ok_or(CUT)?;
        let start = number(header, 0, 4).ok_or(CUT)?;
        // Without a search for the end of each name: a file can have 65,535 names without one.
        let rest = names.get(start..).and_then(|rest| rest.strip_prefix(name.as_bytes()));
        if rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == 0)) {
            return contents(header).map(Some).ok_or(CUT);
        }
    }
    Ok(None)
}

const EM_BPF: usize = 247;

/// A little-endian number of `bytes` bytes at `at`.
fn number(data: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let mut word = [0; 8];
    word.get_mut(..bytes)?.copy_from_slice(data.get(at..at.checked_add(bytes)?)?);
    usize::try_from(u64::from_le_bytes(word)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::STACKS;

    #[test]
    fn sections_are_found_by_name() {
        let file = STACKS[0].object;
        assert_eq!(section(file, "license"), Ok(Some(b"Dual MIT/GPL\0".as_slice())));
        assert_eq!(section(file, "licence"), Ok(None));
        assert!(section(b"#!/bin/sh", "license").is_err());
        assert_eq!(section(file, "licens"), Ok(None), "not by the start of a name");
    }

    proptest! {
        #[test]
        fn damage_is_an_answer(at in 0_usize..20_000, byte: u8, end in 0_usize..20_000) {
            let mut file = STACKS[0].object.to_vec();
            let at = at % file.len();
            file[at] = byte;
            let _ = section(&file, "license");
            file.truncate(end);
            let _ = section(&file, "license");
        }
    }
}
