//! Targets for the measured points.

use super::beside::{ComparedOram, OramComparison};
use super::claim::{Claim, Statement};
use super::points::{Measured, MeasuredTree};

/// The targets, which were set before any measurement, with the measured values. Targets without a
/// measured value are omitted.
pub(super) fn targets(measured: &[Measured], beside: &[OramComparison]) -> Vec<Claim> {
    let direct = |block_bytes: u32, height: u8, slots: u16| {
        measured.iter().find(|it| {
            let shape = it.shape;
            it.link.is_none()
                && shape.servers == 3
                && (shape.block_bytes, shape.height, shape.slots) == (block_bytes, height, slots)
        })
    };
    let (small, large) = (direct(4 << 10, 4, 333), direct(128 << 10, 2, 74));
    let target = |what: &str, seconds: f64, ours: Option<f64>| Claim {
        place: "target here".to_owned(),
        what: what.to_owned(),
        unit: "s".to_owned(),
        says: Some(Statement::AtMost(seconds)),
        ours,
        remark: "Measured directly; the mean.".to_owned(),
    };
    let question = |of: Option<&Measured>, it: usize| of.map(|it_| it_.questions[it].mean);
    let eviction = |of: Option<&Measured>| of.map(|it| it.eviction.whole.mean);
    let behind = measured.iter().find(|it| it.link.is_some() && it.shape == MeasuredTree::LARGE);
    let path = beside.iter().find(|it| it.other == ComparedOram::PathZ5);
    let seconds = behind.map(Measured::with_evictions);
    let faster = Claim {
        unit: "times".to_owned(),
        says: Some(Statement::AtLeast(8.0)),
        remark: "Measured behind the same link; with evictions, means.".to_owned(),
        ..target(
            "128 KiB, H 6, Z 333, behind `home`: faster than Path ORAM Z5",
            0.0,
            seconds.zip(path).map(|(seconds, path)| path.alone.mean / seconds),
        )
    };
    let access = Claim {
        remark: "Measured behind the link, with its share of evictions; from files, not from \
                 memory."
            .to_owned(),
        ..target("128 KiB, H 6, Z 333, behind `home`: an access", 1.0, seconds)
    };
    let all = [
        target("4 KiB, H 4, Z 333: read", 0.003, question(small, 0)),
        target("4 KiB, H 4, Z 333: eviction", 0.6, eviction(small)),
        target("128 KiB, H 2, Z 74: read", 0.025, question(large, 0)),
        target("128 KiB, H 2, Z 74: written to the root", 0.010, question(large, 1)),
        access,
        faster,
    ];
    all.into_iter().filter(|target| target.ours.is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::place::DelayParts;
    use super::super::points::{MeasuredTree, Timed};
    use super::super::spread::Spread;
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn targets_are_judged_by_direct_measurements() {
        let spread = |mean: f64| Spread { mean, ..Spread::default() };
        let timed = |mean: f64| Timed {
            whole: spread(mean),
            client: spread(0.0),
            worked: spread(0.0),
            modelled: DelayParts { disk: mean * 1.06, ..DelayParts::default() },
            modelled_worked: 0.0,
        };
        assert!(!timed(1.0).fits() && (timed(2.0).off_by() - 0.06).abs() < 1e-9);
        let of = |read: f64, link| Measured {
            shape: MeasuredTree {
                block_bytes: 4 << 10,
                height: 4,
                slots: 333,
                accesses: 176,
                evictions: [1, 1],
                servers: 3,
                colluding: 1,
                is_loaded: false,
            },
            link,
            access: timed(read),
            questions: [read, read].map(spread),
            eviction: timed(0.7),
            access_bytes: [0.0; 2],
            eviction_bytes: [0.0; 2],
            files: Default::default(),
        };
        let verdicts = |measured: &[Measured]| {
            targets(measured, &[]).iter().map(Claim::verdict).collect::<Vec<_>>()
        };
        // The other trees were not measured.
        assert_eq!(verdicts(&[of(0.002, None)]), [Verdict::Agrees, Verdict::Differs]);
        assert_eq!(verdicts(&[of(0.004, None)])[0], Verdict::Differs);
        let home = oblivio_models::link::LINKS[0].link;
        assert_eq!(verdicts(&[of(0.002, Some(home))]), []);
        // An access of 2 ms plus a 176th of 0.7 s.
        let large = Measured { shape: MeasuredTree::LARGE, ..of(0.002, Some(home)) };
        let path = |seconds: f64| OramComparison {
            other: ComparedOram::PathZ5,
            blocks: 11_264,
            block_bytes: 128 << 10,
            link: home,
            alone: spread(seconds),
            alone_modelled: seconds,
            together: None,
            together_modelled: None,
        };
        let both = |seconds: f64| {
            let targets = targets(std::slice::from_ref(&large), &[path(seconds)]);
            targets.iter().map(Claim::verdict).collect::<Vec<_>>()
        };
        assert_eq!(both(0.0477), [Verdict::Agrees, Verdict::Differs]);
        assert_eq!(both(0.0479), [Verdict::Agrees, Verdict::Agrees]);
    }
}
