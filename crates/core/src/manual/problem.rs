//! The information that encryption does not hide, and the promise of the word "oblivious".
//!
//! Put an encrypted array on storage you do not trust. The storage cannot read a block, but it can
//! watch accesses: block 17 is read each morning, block 40 is written after every block 41, these
//! ten blocks are a binary search. Such traces have been used to recover queries, keys and
//! documents.
//!
//! An **Oblivious RAM** is a client that makes every sequence of requests look like every other of
//! the same length. Formally: take two sequences `y` and `y'` with the same number of requests,
//! reads and writes together. No adversary with bounded computing power can distinguish the view
//! that storage has of `y` from its view of `y'` (Goldreich and Ostrovsky).
//!
//! Every ORAM uses two techniques, and both cost something:
//! - **Shuffle.** A block that is accessed moves to a fresh random place, so that the next access
//!   to it looks like an access to any other block. The client must remember the new place.
//! - **Pad.** An access reads and writes more blocks than were requested, so that the requested one
//!   does not stand out. Everything is encrypted again each time, so that storage cannot see what
//!   changed.
//!
//! What is *not* hidden: the number and times of requests, the size of the array, and that this is
//! an ORAM. `docs/threat-model.md` of the repository has the full list.
//!
//! # Words
//! | word | meaning |
//! |---|---|
//! | block | what the user reads and writes, 16 bytes to 1 MiB, named by its address |
//! | slot | room for one block in storage; a slot without one holds a *dummy* |
//! | bucket | Z slots and a header that lists their blocks: a node of the tree |
//! | path | the buckets from the root to a leaf; named by the leaf's label |
//! | stash | blocks held by the client outside of the tree |
//! | position map | for each block, the leaf of the path it is on |
//! | remap | give a block a fresh random leaf |
//! | evict | move blocks from the stash back into the tree |
