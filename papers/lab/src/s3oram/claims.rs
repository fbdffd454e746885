//! All numbers of the paper's evaluation, with their place in the paper, and our numbers.
//!
//! The published form of S³ORAM is compared with the paper's numbers. Separate claims have the
//! numbers of this project's form.

use oblivio_core::durable::{ArrayRequirements, DurableScheme};
use oblivio_shares::durable::DurableS3Oram;
use oblivio_shares::tree::Tree;

use super::claim::{Claim, Statement};
use super::model::{DATABASE, HOME, KIB, LTE, Model, STATED_SECONDS};
use super::place::{DelayParts, Deployment, Disk};
use super::recursion;
use super::work::{Scheme, ring};
use crate::LabError;
use crate::links::{ShareEncoding, TABLE1_LINK};
use oblivio_models::link::Link;

/// The relative tolerance for a number that the paper states with "around" or "approximately".
const AROUND: f64 = 0.1;

/// The relative tolerance for a number that the paper states with three digits. The tolerance also
/// covers the time of the disk, which the paper's delays do not include.
const EXACT: f64 = 0.01;

/// All claims, in the order of the paper.
pub(super) fn claims(model: &Model) -> Result<Vec<Claim>, LabError> {
    let mut list = List { model, claims: Vec::new() };
    list.table_1()?;
    list.claims.extend(recursion::claims(model)?);
    list.building();
    list.delays()?;
    list.breakdown()?;
    list.phone()?;
    list.crossovers()?;
    list.storage()?;
    list.targets()?;
    Ok(list.claims)
}

struct List<'m> {
    model: &'m Model,
    claims: Vec<Claim>,
}

impl List<'_> {
    fn add(
        &mut self,
        place: &str,
        what: impl Into<String>,
        unit: &str,
        says: impl Into<Option<Statement>>,
        ours: Option<f64>,
        remark: impl Into<String>,
    ) {
        let (place, unit) = (place.to_owned(), unit.to_owned());
        let (what, says, remark) = (what.into(), says.into(), remark.into());
        self.claims.push(Claim { place, what, unit, says, ours, remark });
    }

    fn table_1(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "Table 1";
        for (link, name) in [(TABLE1_LINK, "on the table's 27/6"), (HOME, "on section 5's 29/5")] {
            let parts = self.parts(Scheme::Path, (link, &Disk::ebs()), 128)?;
            let what = format!("Path ORAM, 40 GB in 128 KiB, {name}");
            let remark = "19 levels, all bytes one after the other. The paper's number is for the \
                          link of its table.";
            self.add(
                PLACE,
                what,
                "s",
                Statement::About(20.3, EXACT),
                Some(parts.seconds()),
                remark,
            );
        }
        for (link, name) in [(TABLE1_LINK, "on 27/6"), (HOME, "on 29/5")] {
            for scheme in [Scheme::RingAtLeast, Scheme::RingAtMost] {
                let seconds = self.parts(scheme, (link, &Disk::ebs()), 128)?.seconds();
                let what = format!("Ring ORAM {name}, PoissCDF {:.3}", scheme.reshuffles());
                let remark = "Computed, not built here. 19 levels as in Path ORAM. The stated \
                              number lies between both readings of the formula.";
                self.add(PLACE, what, "s", Statement::About(13.2, AROUND), Some(seconds), remark);
            }
        }
        let own = ring(16, Scheme::RingAtMost.reshuffles(), 128 * KIB).serial_seconds(TABLE1_LINK);
        let remark = "Computed, not built here. Leaves of A / 2 blocks each, as in Ring ORAM's \
                      paper, need 16 levels.";
        self.add(
            PLACE,
            "Ring ORAM on 27/6, 0.888, in a tree of its paper's size",
            "s",
            Statement::About(13.2, AROUND),
            Some(own),
            remark,
        );
        self.add(PLACE, "Onion ORAM", "s", Statement::About(1e4, AROUND), None, "Not built here.");
        for disk in [Disk::ebs(), Disk::local(), Disk::memory(), self.model.fitted.clone()] {
            let seconds = self.parts(Scheme::Published, (TABLE1_LINK, &disk), 128)?.seconds();
            let what = format!("S³ORAM as published on 27/6, disk {disk}");
            let remark = "An access reads 0.52 GB on each server. The paper's servers had 30 GB of \
                          memory in front of a disk of 160 MB/s; the contents of memory are not \
                          stated.";
            self.add(PLACE, what, "s", Statement::About(2.5, AROUND), Some(seconds), remark);
        }
        Ok(())
    }

    fn building(&mut self) {
        const PLACE: &str = "5.3, building";
        let says = Statement::AtMost(3600.0);
        // The paper's trees have four slots for each block, and all slots are shared.
        let seconds = 4.0 * DATABASE as f64 / self.model.machine.bytes.share;
        let remark = "All slots shared on one thread, without storing or sending them: over \
                      5 Mbit/s, 40 GB take days.";
        self.add(PLACE, "Shares of 40 GB: around 1 hour", "s", says, Some(seconds), remark);
        let says = Statement::Between(3000.0, 3600.0, 0.0);
        self.add(PLACE, "Encrypting the counterparts", "s", says, None, "Not measured here.");
    }

    fn delays(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "5.3, Fig. 3";
        let fitted = "On the disk fitted to 2.4 s at 128 KiB; this number was not fitted.";
        for (kib, stated) in [(128, STATED_SECONDS), (256, 4.5), (512, 7.3)] {
            let remark = if kib == 128 {
                "The number that the disk was fitted \
                                          to."
            } else {
                fitted
            };
            let seconds = self.seconds(Scheme::Published, kib)?;
            let what = format!("S³ORAM as published, 40 GB, {kib} KiB");
            self.add(PLACE, what, "s", Statement::About(stated, AROUND), Some(seconds), remark);
        }
        let published = self.seconds(Scheme::Published, 256)?;
        let counterparts =
            [(Scheme::Path, 8.3), (Scheme::RingAtLeast, 5.4), (Scheme::RingAtMost, 5.4)];
        for (scheme, stated) in counterparts {
            let ratio = self.seconds(scheme, 256)? / published;
            let what = format!("256 KiB: faster than {scheme}, times");
            self.add(PLACE, what, "×", Statement::About(stated, AROUND), Some(ratio), fitted);
        }
        const ALL: &str = "5.3, Fig. 4";
        for (scheme, stated) in
            [(Scheme::Path, 8.0), (Scheme::RingAtLeast, 5.0), (Scheme::RingAtMost, 5.0)]
        {
            for kib in [4, 64, 128, 768] {
                let ratio = self.seconds(scheme, kib)? / self.seconds(Scheme::Published, kib)?;
                let what = format!("{kib} KiB: faster than {scheme}, times (\"always\")");
                let remark = if kib == 4 {
                    "A query and its share of the matrices do not shrink with the block: they are \
                     33 times as long."
                } else {
                    fitted
                };
                self.add(
                    ALL,
                    what,
                    "×",
                    Statement::About(stated, 2.0 * AROUND),
                    Some(ratio),
                    remark,
                );
            }
        }
        Ok(())
    }

    fn breakdown(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "5.3, Fig. 5";
        let part = |part: f64, parts: &DelayParts| Some(100.0 * part / parts.seconds());
        for kib in [128, 256, 512] {
            let parts = self.parts(Scheme::Published, (HOME, &self.model.fitted.clone()), kib)?;
            let remark =
                "Eight processors for each server, and arithmetic modulo 2^61 - 1 as fast as here.";
            let what = |what: &str| format!("{kib} KiB: {what}");
            self.add(
                PLACE,
                what("servers compute"),
                "%",
                Statement::Between(5.0, 8.0, 0.0),
                part(parts.servers, &parts),
                remark,
            );
            let moved = part(parts.client_server + parts.disk, &parts);
            self.add(PLACE, what("client-server and disk"), "%", Statement::Above(90.0), moved, "");
        }
        let tree = Scheme::tree(Scheme::Published, DATABASE / u64::from(512 * KIB))?;
        let (bytes, seconds) = small_messages(tree, 512 * KIB);
        self.add(
            PLACE,
            "512 KiB: query and matrices, of bytes client-server",
            "%",
            Statement::Between(6.0, 7.0, AROUND),
            Some(100.0 * bytes),
            "A share of the bytes in both directions.",
        );
        let remark = "A share of the time: all of them go up, where the link is slower. The paper \
                      does not define its share.";
        self.add(
            PLACE,
            "512 KiB: the same, of time client-server",
            "%",
            Statement::Between(6.0, 7.0, AROUND),
            Some(100.0 * seconds),
            remark,
        );
        let [ebs, local] = [Disk::ebs(), Disk::local()]
            .map(|disk| self.parts(Scheme::Published, (HOME, &disk), 128));
        let gain = ebs?.seconds() / local?.seconds();
        let remark = "128 KiB, without a cache: from 160 to 450 MB/s.";
        self.add(
            PLACE,
            "Local storage: faster, times",
            "×",
            Statement::AtLeast(2.0),
            Some(gain),
            remark,
        );
        for kib in [128, 256, 512] {
            let read = Scheme::Published.works(DATABASE, kib * KIB)?.access.disk_read_bytes / 1e9;
            let what = format!("{kib} KiB: an access reads on each server");
            self.add(
                PLACE,
                what,
                "GB",
                Statement::Between(1.0, 2.0, AROUND),
                Some(read),
                "All slots of a path.",
            );
        }
        for (scheme, stated) in [(Scheme::Path, 97.0), (Scheme::RingAtMost, 96.0)] {
            let parts = self.parts(scheme, (HOME, &Disk::ebs()), 128)?;
            let what = format!("{scheme}: client-server");
            let remark = "Sealing is not counted.";
            self.add(
                PLACE,
                what,
                "%",
                Statement::About(stated, 0.04),
                part(parts.client_server, &parts),
                remark,
            );
        }
        Ok(())
    }

    fn phone(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "5.3, Figs. 6 and 7";
        for kib in [128, 512] {
            let parts = self.parts(Scheme::Published, (LTE, &self.model.fitted.clone()), kib)?;
            let remark = "On this machine, not on a phone.";
            let ours = 100.0 * parts.client / parts.seconds();
            self.add(
                PLACE,
                format!("{kib} KiB: the client computes"),
                "%",
                Statement::Below(5.0),
                Some(ours),
                remark,
            );
            let says = Statement::About(50.0, AROUND);
            self.add(
                PLACE,
                format!("{kib} KiB: the client computes, on a phone"),
                "ms",
                says,
                Some(1e3 * parts.client),
                remark,
            );
            let home = self.seconds(Scheme::Published, kib)?;
            let gain = home / parts.seconds();
            let remark = "\"Slightly better\": its uplink is faster.";
            self.add(
                PLACE,
                format!("{kib} KiB: faster than at home, times"),
                "×",
                Statement::Above(1.0),
                Some(gain),
                remark,
            );
        }
        Ok(())
    }

    fn crossovers(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "5.3, Fig. 8";
        for disk in [Disk::ebs(), self.model.fitted.clone()] {
            for (scheme, stated) in
                [(Scheme::Path, 240.0), (Scheme::RingAtLeast, 110.0), (Scheme::RingAtMost, 110.0)]
            {
                let ours = self.model.crossover(scheme, Scheme::Published, &disk)?;
                let what = format!("{scheme} is faster from, disk {disk}");
                let remark =
                    "The same rate up and down, and 15 ms. A slower disk gives a lower rate.";
                self.add(PLACE, what, "Mbit/s", Statement::About(stated, AROUND), ours, remark);
            }
        }
        let here = "This project's form instead of the published one.";
        for scheme in [Scheme::Large, Scheme::Small] {
            let ours = self.model.crossover(Scheme::Path, scheme, &self.model.fitted)?;
            let what = format!("Path ORAM is faster than {scheme} from");
            self.add(PLACE, what, "Mbit/s", None, ours, here);
        }
        Ok(())
    }

    fn storage(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "5.3, storage";
        let blocks = DATABASE / u64::from(128 * KIB);
        let of_tree =
            |tree: Tree| (2 * tree.leaves() - 1) as f64 * tree.slots() as f64 / blocks as f64;
        let ours = of_tree(Scheme::tree(Scheme::Published, blocks)?);
        self.add(
            PLACE,
            "S³ORAM as published, 40 GB in 128 KiB, a server",
            "N·B",
            Statement::About(4.0, AROUND),
            Some(ours),
            "Slots of its tree.",
        );
        let config = DurableS3Oram.plan(&ArrayRequirements {
            block_bytes: 128 * KIB,
            client_bytes_max: u64::MAX,
            ..ArrayRequirements::new(DATABASE, DurableS3Oram.name())
        })?;
        let ours = config.cost()?.tree_bytes as f64 / 3.0 / DATABASE as f64;
        let remark = "With a second slot set for each leaf, so that an eviction can be rolled \
                      back.";
        self.add(
            PLACE,
            "S³ORAM here, a server",
            "N·B",
            Statement::About(4.0, AROUND),
            Some(ours),
            remark,
        );
        // The slots of trees with 19 and with 16 levels.
        let slots =
            |levels: i32, slots: f64| slots * (f64::powi(2.0, levels) - 1.0) / blocks as f64;
        let remark = "Five slots in each of 2^19 buckets. With as many leaves as blocks it would \
                      be 10, but the number of blocks is no power of two here.";
        self.add(
            PLACE,
            "Path ORAM",
            "N·B",
            Statement::About(10.0, AROUND),
            Some(slots(19, 5.0)),
            remark,
        );
        let remark =
            "Computed, not built here. Z + S slots in 16 levels; the paper does not derive 6.";
        self.add(
            PLACE,
            "Ring ORAM",
            "N·B",
            Statement::About(6.0, AROUND),
            Some(slots(16, 41.0)),
            remark,
        );
        let remark = "Not computed here: `oblivio-lab run stash-study` measures stashes.";
        self.add(
            PLACE,
            "Stash of Path and Ring ORAM, 512 KiB",
            "MB",
            Statement::Between(32.0, 33.0, 0.0),
            None,
            remark,
        );

        const MAP: &str = "5.3, position map";
        let blocks = f64::powi(2.0, 25);
        let bits = blocks.log2();
        let mib = |bits: f64| Some(blocks * bits / 8.0 / f64::from(1 << 20));
        let of_16_tb = "16 TB in 512 KiB";
        self.add(
            MAP,
            format!("S³ORAM as published, {of_16_tb}"),
            "MiB",
            Statement::About(119.0, EXACT),
            mib(bits + bits.log2()),
            "N (log N + log log N) bits.",
        );
        self.add(
            MAP,
            format!("Others, {of_16_tb}"),
            "MiB",
            Statement::About(100.0, EXACT),
            mib(bits),
            "N log N bits.",
        );
        let config = DurableS3Oram.plan(&ArrayRequirements {
            block_bytes: 512 * KIB,
            client_bytes_max: u64::MAX,
            ..ArrayRequirements::new(16 << 40, DurableS3Oram.name())
        })?;
        let ours = config.cost()?.position_map_bytes as f64 / f64::from(1 << 20);
        let remark = "In memory as whole words, with the number of each block's last write.";
        self.add(
            MAP,
            format!("S³ORAM here, {of_16_tb}"),
            "MiB",
            Statement::About(119.0, EXACT),
            Some(ours),
            remark,
        );
        Ok(())
    }

    /// Adds this project's targets for its own form.
    fn targets(&mut self) -> Result<(), LabError> {
        const PLACE: &str = "target here";
        for scheme in [Scheme::Large, Scheme::Small] {
            for disk in [Disk::memory(), Disk::local(), Disk::ebs()] {
                let seconds = self.parts(scheme, (HOME, &disk), 128)?.seconds();
                let what = format!("{scheme}, 40 GB in 128 KiB, home, disk {disk}");
                self.add(PLACE, what, "s", Statement::AtMost(1.0), Some(seconds), "By the model.");
            }
            let work = scheme.works(DATABASE, 128 * KIB)?.mean();
            let place = Deployment { processors: 1.0, ..Deployment::paper(HOME, Disk::memory()) };
            let seconds = place.parts(&work, &self.model.machine.bytes).seconds();
            let what = format!("{scheme}, the same in memory, one processor a server");
            self.add(PLACE, what, "s", Statement::AtMost(1.0), Some(seconds), "By the model.");
        }
        Ok(())
    }

    fn parts(&self, scheme: Scheme, at: (Link, &Disk), kib: u32) -> Result<DelayParts, LabError> {
        self.model.parts(scheme, at, DATABASE, kib * KIB)
    }

    fn seconds(&self, scheme: Scheme, kib: u32) -> Result<f64, LabError> {
        self.model.seconds(scheme, HOME, kib * KIB)
    }
}

/// The query and the matrices of the published form: first as a fraction of all bytes between
/// client and servers, then as a fraction of the time over [`HOME`] without round trips.
fn small_messages(tree: Tree, block_bytes: u32) -> (f64, f64) {
    let form = ShareEncoding::PAPER;
    let small = form.query_bytes(tree) + form.matrix_bytes(tree) / tree.accesses() as f64;
    let blocks = form.sent * f64::from(block_bytes);
    let (down, up) = (HOME.down_bytes_per_second(), HOME.up_bytes_per_second());
    let seconds = blocks / down + (blocks + small) / up;
    (small / (2.0 * blocks + small), small / up / seconds)
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::machine;
    use super::*;
    use crate::report::Verdict;

    fn claim(what: &str) -> Claim {
        let claims = claims(&Model::new(machine()).unwrap()).unwrap();
        let found = claims.iter().find(|claim| claim.what.starts_with(what));
        found.unwrap_or_else(|| panic!("no claim of {what}")).clone()
    }

    #[test]
    fn counted_numbers_agree_with_the_paper_and_others_are_open() {
        for what in [
            "Path ORAM, 40 GB in 128 KiB, on the table's 27/6",
            "512 KiB: query and matrices, of bytes",
            "S³ORAM as published, 40 GB in 128 KiB, a server",
            "S³ORAM as published, 16 TB",
            "Others, 16 TB",
        ] {
            let claim = claim(what);
            assert_eq!(claim.verdict(), Verdict::Agrees, "{claim:?}");
        }
        // The same number on another link, for another tree, and for short blocks.
        for what in [
            "Path ORAM, 40 GB in 128 KiB, on section 5's",
            "S³ORAM here, a server",
            "4 KiB: faster",
        ] {
            let claim = claim(what);
            assert_eq!(claim.verdict(), Verdict::Differs, "{claim:?}");
        }
        assert_eq!(claim("Onion ORAM").verdict(), Verdict::Open);
    }

    /// Compares the share of the query and the matrices in all bytes with a value computed by hand,
    /// for H = 9 and blocks of 512 KiB.
    #[test]
    fn query_and_matrices_match_a_count_by_hand() {
        let tree = Scheme::tree(Scheme::Published, DATABASE / u64::from(512 * KIB)).unwrap();
        assert_eq!(tree.height(), 9);
        let small = 24.0 * 10.0 * 333.0 + 24.0 * 10.0 * 2.0 * 333.0;
        let (bytes, _) = small_messages(tree, 512 * KIB);
        assert!((bytes - small / (6.0 * 524_288.0 + small)).abs() < 1e-12, "{bytes}");
    }
}
