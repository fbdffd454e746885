//! Writes `docs/claims.md`, the annex of the threat model, from `docs/claims.toml`.
//!
//! `cargo run -p oblivio-architecture --example claims`

use std::error::Error;
use std::fs;
use std::path::Path;

use oblivio_architecture::claims::Claims;

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let claims = Claims::parse(&fs::read_to_string(docs.join("claims.toml"))?)?;
    fs::write(docs.join("claims.md"), claims.to_markdown())?;
    Ok(())
}
