//! Small changes of an input, by a fixed generator: what an ordinary test does of a fuzzer's work.

/// A generator of numbers (splitmix64). The same seed gives the same ones everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `most`; 0 if that is 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.number() % (most.max(1) as u64)) as usize
    }
}

/// Numbers at the edges of what fields hold.
const EDGES: [&[u8]; 8] = [
    b"\0",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"18446744073709551615",
    b"-1",
    b"9223372036854775807",
];

/// Changes some bytes of an input, or puts parts of two together.
pub fn mutate(random: &mut Random, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.number() as u8,
            2 => bytes.truncate(at),
            3 => {
                let edge = EDGES[random.below(EDGES.len())];
                bytes.splice(at..at, edge.iter().copied());
            }
            4 => {
                let end = (at + random.below(16)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + random.below(32)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            6 if !other.is_empty() => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
            _ if !bytes.is_empty() => {
                let edge = EDGES[random.below(EDGES.len())];
                let end = (at + edge.len()).min(bytes.len());
                bytes.splice(at..end, edge.iter().copied());
            }
            _ => bytes.push(random.number() as u8),
        }
    }
    bytes
}
