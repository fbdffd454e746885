//! Storage in parts that seek in parallel (rORAM, section VIII-A). Levels of trees are assigned to
//! the parts round-robin.

use oblivio_models::medium::Request;

/// Counts the seeks of storage in parts. Within a run of paths, different parts seek in parallel.
pub(super) struct ParallelSeeks {
    /// Seeks of the current run, per part.
    of_run: Vec<u64>,
    last_level: u8,
    /// Sequential seeks of completed runs: for each run, the seeks of the part with the most.
    seeks: u64,
}

impl ParallelSeeks {
    pub(super) fn of_parts(parts: usize) -> Self {
        Self { of_run: vec![0; parts], last_level: 0, seeks: 0 }
    }

    /// Counts a request as one seek on the part of storage that holds the request's level. A
    /// request to a level nearer to the root than the previous request starts a new run.
    pub(super) fn add(&mut self, request: &Request) {
        if request.level < self.last_level {
            self.end_run();
        }
        self.last_level = request.level;
        let parts = self.of_run.len();
        self.of_run[usize::from(request.level) % parts] += 1;
    }

    fn end_run(&mut self) {
        self.seeks += self.of_run.iter().max().copied().unwrap_or(0);
        self.of_run.fill(0);
    }

    /// The number of sequential seeks.
    pub(super) fn seeks(mut self) -> u64 {
        self.end_run();
        self.seeks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_seek_at_once_and_runs_do_not() {
        let seeks = |parts| {
            let mut seeks = ParallelSeeks::of_parts(parts);
            for _ in 0..3 {
                (0..8).for_each(|level| seeks.add(&Request { offset: 0, bytes: 1, level }));
            }
            seeks.seeks()
        };
        assert_eq!([1, 2, 3, 4, 8, 20].map(seeks), [24, 12, 9, 6, 3, 3]);
    }
}
