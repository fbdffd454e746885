//! Parses sizes in bytes.

/// Parses a number of bytes with an optional unit (powers of 1024): `64M`, `1GiB`, `2P`, `4096`.
///
/// # Errors
/// A message that says what is wrong with the text.
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
        _ => return Err("unknown unit; use K, M, G, T, P or E (powers of 1024)".into()),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "it is 2^64 bytes or more".into())
}
