//! Runs independent tasks on several threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `run` on each of `tasks`, and returns the results in the order of the tasks. After the
/// first failure, no further task starts.
///
/// # Errors
/// The error of a task that failed.
///
/// # Panics
/// If `run` panics.
pub fn run_all<T: Sync, R: Send, E: Send>(
    tasks: &[T],
    threads: NonZeroUsize,
    run: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(tasks.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(tasks.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(number) else { break };
                    let result = run(task);
                    let failed = result.is_err();
                    done.lock()
                        .expect("no thread panics while it holds this")
                        .push((number, result));
                    if failed {
                        next.store(tasks.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics while it holds this");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_tasks_and_failures_come_through() {
        let tasks: Vec<u64> = (0..100).collect();
        let three = NonZeroUsize::new(3).unwrap();
        let squares = run_all(&tasks, three, |task| Ok::<_, ()>(task * task)).unwrap();
        assert!(squares.into_iter().eq(tasks.iter().map(|task| task * task)));
        assert_eq!(run_all(&tasks, three, |task| if *task == 7 { Err(7) } else { Ok(()) }), Err(7));
    }
}
