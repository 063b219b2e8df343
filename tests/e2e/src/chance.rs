//! Chance that a seed repeats, so that a failed crash test can be run again.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Seeded by `WHARF_SEED`, or by the clock; prints the seed.
    #[must_use]
    pub fn from_environment(what: &str) -> Self {
        let seed = std::env::var("WHARF_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            now.as_micros() as u64
        });
        println!("{what}: seed {seed} (WHARF_SEED={seed} repeats it)");
        Self(seed)
    }
    /// With this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number from `0` to `end - 1`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }
}
