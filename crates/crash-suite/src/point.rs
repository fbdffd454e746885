//! A point at which something goes wrong, and its name: enough to meet it again.
//!
//! ```text
//! SETUP/SEED/LIFE[/LIFE...]        LIFE = FAULT:STORE:DIRECTORY
//! sync-at-flush/2/crash@117:torn:all/crash@20:none:none
//! ```

use std::fmt;

use oblivio_testkit::crash::{Fault, Life, Loss, Ran, Survival};

use crate::setups::{Setup, setups};

#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) setup: Setup,
    pub(crate) seed: u64,
    /// Each with one fault.
    pub(crate) lives: Vec<Life>,
}

impl Point {
    pub(crate) fn run(&self) -> Result<Ran, Loss> {
        self.setup.run(self.seed, &self.lives)
    }

    /// The point that `name` names.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{name:?} names no point: {what}");
        let mut parts = name.split('/');
        let setup = parts.next().unwrap_or_default();
        let setup = setups().into_iter().find(|known| known.name == setup).ok_or_else(|| {
            let known: Vec<_> = setups().iter().map(|setup| setup.name).collect();
            wrong(&format!("the setups are {}", known.join(", ")))
        })?;
        let seed = parts.next().and_then(|seed| seed.parse().ok());
        let seed = seed.ok_or_else(|| wrong("after the setup comes a seed"))?;
        let lives: Option<Vec<_>> = parts.map(parse_life).collect();
        let lives = lives.filter(|lives| !lives.is_empty());
        let lives = lives.ok_or_else(|| wrong("a life is FAULT@N:STORE:DIRECTORY"))?;
        Ok(Self { setup, seed, lives })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.setup.name, self.seed)?;
        for Life { faults, store, dir } in &self.lives {
            let (fault, n) = faults.first().map_or(("none", 0), fault_name);
            write!(f, "/{fault}@{n}:{}:{}", survival_name(*store), survival_name(*dir))?;
        }
        Ok(())
    }
}

pub(crate) fn fault_name(fault: &Fault) -> (&'static str, u64) {
    match *fault {
        Fault::CrashAt(n) => ("crash", n),
        Fault::FailAt(n) => ("fail", n),
        Fault::FailEvery(n) => ("fail-every", n),
        Fault::DiskFullAt(n) => ("full", n),
        Fault::DiskFullFrom(n) => ("full-from", n),
        Fault::StoreDiesAt(n, Survival::All) => ("store-dies-all", n),
        Fault::StoreDiesAt(n, Survival::None) => ("store-dies-none", n),
        Fault::StoreDiesAt(n, Survival::Random { torn: false }) => ("store-dies-some", n),
        Fault::StoreDiesAt(n, Survival::Random { torn: true }) => ("store-dies-torn", n),
    }
}

pub(crate) fn survival_name(survival: Survival) -> &'static str {
    match survival {
        Survival::All => "all",
        Survival::None => "none",
        Survival::Random { torn: false } => "some",
        Survival::Random { torn: true } => "torn",
    }
}

fn survival(name: &str) -> Option<Survival> {
    Survival::MODES.into_iter().find(|mode| survival_name(*mode) == name)
}

fn parse_life(life: &str) -> Option<Life> {
    let mut parts = life.split(':');
    let (fault, n) = parts.next()?.split_once('@')?;
    let n = n.parse().ok()?;
    let fault = match fault {
        "crash" => Fault::CrashAt(n),
        "fail" => Fault::FailAt(n),
        "fail-every" if n > 0 => Fault::FailEvery(n),
        "full" => Fault::DiskFullAt(n),
        "full-from" => Fault::DiskFullFrom(n),
        _ => Fault::StoreDiesAt(n, survival(fault.strip_prefix("store-dies-")?)?),
    };
    let mut survival = || survival(parts.next()?);
    let (store, dir) = (survival()?, survival()?);
    parts.next().is_none().then_some(Life { faults: vec![fault], store, dir })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_names_its_point_and_nothing_else_does() {
        for name in [
            "sync-at-flush/2/crash@117:torn:all/fail-every@20:none:some",
            "remote/1/store-dies-torn@3:all:none",
        ] {
            assert_eq!(Point::parse(name).unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "elsewhere/2/crash@1:all:all",
            "sync-at-flush/2",
            "sync-at-flush/x/crash@1:all:all",
            "sync-at-flush/2/crash@1:all",
            "sync-at-flush/2/crash@1:all:all:all",
            "sync-at-flush/2/fail-every@0:all:all",
            "remote/1/store-dies@3:all:none",
        ] {
            assert!(Point::parse(wrong).is_err(), "{wrong}");
        }
    }
}
