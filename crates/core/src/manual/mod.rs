//! How Oblivious RAM works, in chapters. The examples are compiled and run.
//!
//! 1. [`problem`]: what encryption does not hide, and what "oblivious" promises.
//! 2. [`path_oram`]: a tree, a stash and a position map.
//! 3. [`raw_oram`]: the same with a third of the encryption.
//! 4. [`sizes`]: how tree, stash and storage follow from the number of blocks.
//! 5. [`recursion`]: a position map that does not fit the client.
//! 6. [`view`](mod@view): how to see what storage sees.
//! 7. [`composition`]: the parameter for each technique, and the techniques that can be combined.

pub mod composition;
pub mod path_oram;
pub mod problem;
pub mod raw_oram;
pub mod recursion;
pub mod sizes;
pub mod view;
