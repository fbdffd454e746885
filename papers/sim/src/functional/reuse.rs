//! Requests with a measured amount of reuse.
//!
//! A cache keeps the nearest reuse to itself. So what an ORAM is asked for again is what has left the
//! cache, and how often that happens is what programs differ in.

use std::collections::{HashSet, VecDeque};

use foldhash::fast::FixedState;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::SimError;

/// Requests that ask again for a block of late with some probability, and else for any other one.
pub(super) struct Reuse {
    share: f64,
    window: usize,
    cache_lines: usize,
    data_blocks: u64,
    coins: StdRng,
    /// What the cache holds, the oldest first.
    cache: VecDeque<u64>,
    /// What has left it of late, in no order.
    left: Vec<u64>,
    /// All of both.
    late: HashSet<u64, FixedState>,
}

impl Reuse {
    pub(super) fn new(
        share: f64,
        window: usize,
        cache_lines: usize,
        data_blocks: u64,
        coins: StdRng,
    ) -> Result<Self, SimError> {
        let late = window.saturating_add(cache_lines) as u64;
        if !(0.0..=1.0).contains(&share) || late > data_blocks / 2 {
            return Err(SimError::Spec(format!(
                "reuse has a probability, and at most half of the {data_blocks} blocks of an ORAM are asked \
                 for again: {share} of {late} is none"
            )));
        }
        Ok(Self {
            share,
            window,
            cache_lines,
            data_blocks,
            coins,
            cache: VecDeque::new(),
            left: Vec::new(),
            late: HashSet::default(),
        })
    }

    pub(super) fn next_line(&mut self) -> u64 {
        let line = match self.left.len() {
            0 => self.another(),
            _ if !self.coins.random_bool(self.share) => self.another(),
            count => self.left.swap_remove(self.coins.random_range(0..count)),
        };
        self.cache.push_back(line);
        if self.cache.len() > self.cache_lines {
            self.leave();
        }
        line
    }

    /// A block that was not asked for of late.
    fn another(&mut self) -> u64 {
        loop {
            let line = self.coins.random_range(0..self.data_blocks);
            if self.late.insert(line) {
                return line;
            }
        }
    }

    /// The oldest line of the cache leaves it, and is remembered instead of another one.
    fn leave(&mut self) {
        let Some(line) = self.cache.pop_front() else { return };
        self.left.push(line);
        if self.left.len() > self.window {
            let place = self.coins.random_range(0..self.left.len());
            let forgotten = self.left.swap_remove(place);
            self.late.remove(&forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn reuse(share: f64) -> Reuse {
        Reuse::new(share, 40, 10, 100_000, StdRng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn as_much_is_asked_for_again_as_is_wanted_and_never_what_the_cache_holds() {
        for share in [0.0, 0.3, 0.9] {
            let mut reuse = reuse(share);
            let lines: Vec<_> = (0..20_000).map(|_| reuse.next_line()).collect();
            let mut last = std::collections::HashMap::new();
            let mut again = 0;
            for (number, line) in lines.iter().enumerate() {
                if let Some(before) = last.insert(line, number) {
                    assert!(number - before > 10, "{line} is still in the cache");
                    // Of 40 that leave by chance, few stay for a thousand requests.
                    again += u32::from(number - before < 1000);
                }
            }
            let part = f64::from(again) / lines.len() as f64;
            assert!((part - share).abs() < 0.02, "{part} and not {share}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut reuse = reuse(0.5);
        for _ in 0..5000 {
            reuse.next_line();
            assert!(reuse.cache.len() <= 10 && reuse.left.len() <= 40);
            assert_eq!(reuse.late.len(), reuse.cache.len() + reuse.left.len());
        }
    }

    #[test]
    fn what_is_no_reuse_is_refused() {
        for (share, window) in [(1.1, 10), (-0.1, 10), (f64::NAN, 10), (0.5, 90), (0.5, usize::MAX)]
        {
            assert!(Reuse::new(share, window, 11, 200, StdRng::seed_from_u64(1)).is_err());
        }
    }
}
