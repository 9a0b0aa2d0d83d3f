//! What a file is recognised by, and where its complete lines end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use contract::Error;
use kernel::id::Identity;

use super::{LINE_BYTES_MAX, Lines, LogFile, Next, open, unreadable};

/// The hash of a file's first complete line, as it is stored; `None` while there is none.
pub(crate) fn identity(file: &LogFile) -> Result<Option<Identity>, Error> {
    let mut lines = Lines::open(&file.path, 0)?;
    match lines.next()? {
        Next::Line(line) => Ok(Some(Identity::from(format!("line1:{:032x}", fnv1a(lines.bytes(&line)))))),
        Next::TooLong { .. } | Next::Partial(_) | Next::End => Ok(None),
    }
}

/// Where a file's last complete line ends, at most at `bytes`.
pub(crate) fn complete_end(file: &LogFile) -> Result<u64, Error> {
    const BLOCK: u64 = 64 * 1024;
    let mut handle = open(&file.path)?;
    let mut end = file.bytes;
    let mut block = Vec::new();
    // Without an end within the longest line there is nothing that could be read there.
    while end > 0 && file.bytes - end <= LINE_BYTES_MAX as u64 {
        let begin = end.saturating_sub(BLOCK);
        read_range(&mut handle, begin, end, &mut block).map_err(|e| unreadable(&file.path, "read", &e))?;
        if let Some(at) = memchr::memrchr(b'\n', &block) {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(end)
}

fn read_range(handle: &mut File, begin: u64, end: u64, into: &mut Vec<u8>) -> std::io::Result<()> {
    into.clear();
    handle.seek(SeekFrom::Start(begin))?;
    handle.take(end - begin).read_to_end(into)?;
    Ok(())
}

/// FNV-1a, 128 bits: it is stored, so it must be the same in every version. Nobody attacks it: it tells files apart that
/// people mixed up.
fn fnv1a(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv1a(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
