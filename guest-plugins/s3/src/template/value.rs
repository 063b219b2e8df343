//! What is inserted into a key, made safe.

/// A value as it goes into a key: `/` and control characters become `_`, and nothing becomes `_`, so that a value neither begins
/// nor empties a path step. Everything else stays, since the request percent-encodes the whole key.
pub fn safe(value: &str) -> String {
    if value.is_empty() {
        return "_".into();
    }
    value.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect()
}

/// Part `n` of a tag, or nothing. As in Fluent Bit, neighbouring delimiters count as one.
pub fn part<'a>(tag: &'a str, delimiters: &str, n: usize) -> &'a str {
    tag.split(|c| delimiters.contains(c)).filter(|part| !part.is_empty()).nth(n).unwrap_or_default()
}

/// Steps that are `.` or `..` would be resolved away by HTTP clients and proxies: their dots become `_`.
pub fn without_dot_steps(key: &str) -> String {
    let steps: Vec<&str> = key
        .split('/')
        .map(|step| match step {
            "." => "_",
            ".." => "__",
            step => step,
        })
        .collect();
    steps.join("/")
}

/// Eight letters and digits that stand for a batch: some 47 bits of a hash of its id.
pub fn short_id(batch_id: &str) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = hash(batch_id);
    (0..8)
        .map(|_| {
            let digit = ALPHABET.get((rest % 62) as usize).copied().unwrap_or(b'0');
            rest /= 62;
            char::from(digit)
        })
        .collect()
}

/// FNV-1a, and SplitMix64's finish, which spreads what differs in the last characters only.
pub fn hash(text: &str) -> u64 {
    let fnv = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
