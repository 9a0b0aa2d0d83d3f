//! The one source of chance in a run: a seed gives the same numbers on every machine.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers for `seed`; neighbouring seeds have nothing in common.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x5DEE_CE66_D5DE_ECE6);
        random.draw();
        random
    }

    /// Numbers for what these parts name together.
    pub fn of(parts: &[u64]) -> Self {
        Self(parts.iter().fold(0x5DEE_CE66_D5DE_ECE6, |sum, part| mix(sum ^ part.wrapping_add(0x9E37_79B9_7F4A_7C15))))
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `n`; 0 if that is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `permille` of 1,000 cases.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// `value` in `permille` of 1,000 cases, else nothing of it.
    pub fn sometimes(&mut self, permille: u64, value: u64) -> u64 {
        if self.chance(permille) { value } else { 0 }
    }
}

/// Spreads the bits of a number.
pub fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
