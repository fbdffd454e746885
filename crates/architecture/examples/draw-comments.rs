//! Draws doc comments at random, for a review of their language.
//!
//! `cargo run -p oblivio-architecture --example draw-comments -- --seed 1 --count 200 [FOLDER]`

#![allow(clippy::print_stdout, reason = "printing the sample is its purpose")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use oblivio_architecture::sources::rust_files;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

/// Draws doc comments of this repository at random and prints each with the line that it documents.
#[derive(Parser)]
struct Arguments {
    /// Seed of the draw. The same seed and sources give the same sample.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of comments to draw.
    #[arg(long, default_value_t = 200)]
    count: usize,

    /// Folders with sources.
    #[arg(default_values = ["crates", "papers", "bench", "fuzz"])]
    folders: Vec<PathBuf>,
}

/// A doc comment and its location.
struct Comment {
    path: PathBuf,
    /// Line number of the comment's first line, from 1.
    line: usize,
    text: String,
    /// First line of code below the comment.
    item: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut comments = Vec::new();
    for folder in &arguments.folders {
        if let Err(error) = read_folder(folder, &mut comments) {
            eprintln!("error: cannot read {}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    }
    let all = comments.len();
    comments.shuffle(&mut StdRng::seed_from_u64(arguments.seed));
    comments.truncate(arguments.count);
    println!("{} of {all} doc comments, seed {}", comments.len(), arguments.seed);
    for (number, comment) in (1..).zip(&comments) {
        let Comment { path, line, text, item } = comment;
        println!("\n{number}. {}:{line}\n{text}{item}", path.display());
    }
    ExitCode::SUCCESS
}

/// Adds the doc comments of all Rust files below `folder`, in the order of the files.
fn read_folder(folder: &Path, comments: &mut Vec<Comment>) -> io::Result<()> {
    for path in rust_files(folder)? {
        comments.extend(read_comments(&path, &fs::read_to_string(&path)?));
    }
    Ok(())
}

/// Returns the doc comments of `source`.
fn read_comments(path: &Path, source: &str) -> Vec<Comment> {
    let is_doc = |line: &&str| line.starts_with("///") || line.starts_with("//!");
    let mut lines = (1..).zip(source.lines().map(str::trim)).peekable();
    let mut comments = Vec::new();
    while let Some((line, first)) = lines.next() {
        if !is_doc(&first) {
            continue;
        }
        let mut text = format!("{first}\n");
        while let Some((_, more)) = lines.next_if(|(_, line)| is_doc(line)) {
            text += more;
            text.push('\n');
        }
        let item = lines.peek().map_or("", |(_, item)| item).to_owned();
        comments.push(Comment { path: path.to_owned(), line, text, item });
    }
    comments
}
