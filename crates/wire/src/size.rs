//! Numbers of bytes as people write them.

/// Bytes, with a unit: `64M`, `1GiB`, `2P`, `4096`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "not a number".to_owned())?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        "e" | "eb" | "eib" => 60,
        _ => return Err("the unit is none of K, M, G, T, P, E (of 1024)".into()),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than 2^64".into())
}
