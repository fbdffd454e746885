//! Runs work on all processors.

use std::sync::Mutex;
use std::thread;

/// Calls `work` for every item, on one thread per processor. Returns the results in any order.
///
/// # Errors
/// An error of `work`, after which the thread that called it takes no more items. Also an error if
/// a thread panicked.
pub(crate) fn at_once<I: Send, T: Send>(
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let left = Mutex::new(items);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let next = left.lock().map_err(|_| "another worker panicked")?.next();
            let Some(item) = next else {
                return Ok(done);
            };
            done.push(work(item)?);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let outcomes: Vec<Result<Vec<T>, String>> = thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let panicked = |_| Err("a worker panicked".to_owned());
        started.into_iter().map(|it| it.join().unwrap_or_else(panicked)).collect()
    });
    let done: Vec<Vec<T>> = outcomes.into_iter().collect::<Result<_, _>>()?;
    Ok(done.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        let mut done = at_once(0..100, |item| Ok(2 * item)).unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..100).map(|item| 2 * item).collect::<Vec<_>>());
    }

    #[test]
    fn an_error_for_one_item_is_returned_for_all() {
        let outcome =
            at_once(0..100, |item| if item == 50 { Err("no".to_owned()) } else { Ok(()) });
        assert_eq!(outcome, Err("no".to_owned()));
    }
}
