//! Draws the pictures of `docs/how-it-works.md` from what the engine does, and storage sees of it: `make pictures`.
//!
//! All coins come from fixed seeds. So the pictures are the same each time, and a test holds that those in the
//! repository are these.

#![allow(clippy::print_stdout, reason = "a tool says what it does")]

mod evictions;
mod path;
mod places;
mod raw;
mod sheet;
mod tree;
mod workloads;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

type Draw = fn() -> Result<String, Box<dyn Error>>;

/// The name of each, and who draws it.
const PICTURES: [(&str, Draw); 4] = [
    ("path.svg", path::draw),
    ("evictions.svg", evictions::draw),
    ("places.svg", places::draw),
    ("workloads.svg", workloads::draw),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("name the folder for the pictures: docs/img")?;
    for (name, draw) in PICTURES {
        let file = Path::new(&folder).join(name);
        fs::write(&file, draw()?).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{}", file.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
