//! What encryption leaves open, and what "oblivious" promises.
//!
//! Put an encrypted array on storage you do not trust. The storage cannot read a block, but it can
//! watch you: block 17 is read each morning, block 40 is written after every block 41, these ten
//! blocks are a binary search. From such traces people have recovered queries, keys and documents.
//!
//! An **Oblivious RAM** is a client that makes every sequence of requests look like every other
//! of the same length. Formally: for two sequences `y` and `y'` of as many reads and writes, what
//! storage sees of `y` and what it sees of `y'` cannot be told apart by anybody with bounded
//! computing power (Goldreich and Ostrovsky).
//!
//! Two tricks are always at work, and both cost something:
//! - **Shuffle.** A block that is touched moves to a fresh random place, so that touching it again
//!   looks like touching something else. The client must remember where it went.
//! - **Pad.** More is read and written than was asked for, so that the interesting part does not
//!   stand out. All of it is encrypted anew each time, so that nobody sees what changed.
//!
//! What is *not* hidden: how many requests there were and when, how large the array is, that this
//! is an ORAM. `docs/threat-model.md` of the repository says it in full.
//!
//! # Words
//! | word | meaning |
//! |---|---|
//! | block | what the user reads and writes, 16 bytes to 1 MiB, named by its address |
//! | slot | room for one block in storage; a slot without one holds a *dummy* |
//! | bucket | Z slots and a header that says whose blocks they hold: a node of the tree |
//! | path | the buckets from the root to a leaf; named by the leaf's label |
//! | stash | blocks that are on the client for the moment |
//! | position map | for each block, the leaf of the path it is on |
//! | remap | give a block a fresh random leaf |
//! | evict | move blocks from the stash back into the tree |
