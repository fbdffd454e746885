//! Draws the pictures of `docs/how-it-works.md` from runs of the engine and the view of storage:
//! `make pictures`.
//!
//! All random choices use fixed seeds, so the pictures are reproducible. A test checks that the
//! committed pictures are up to date.

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

/// The file name of each picture, and the function that draws it.
const PICTURES: [(&str, Draw); 4] = [
    ("path.svg", path::draw),
    ("evictions.svg", evictions::draw),
    ("places.svg", places::draw),
    ("workloads.svg", workloads::draw),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder =
        env::args_os().nth(1).ok_or("give the folder for the pictures, such as docs/img")?;
    for (name, draw) in PICTURES {
        let file = Path::new(&folder).join(name);
        fs::write(&file, draw()?).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{}", file.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
