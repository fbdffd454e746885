//! A point: the faults of one test run, and a name from which the run can be repeated.
//!
//! ```text
//! SETUP/SEED/LIFE[/LIFE...]        LIFE = FAULT:STORE:DIRECTORY
//! sync-at-flush/2/crash@117:torn:all/crash@20:none:none
//! shares/1/server-2-dies-torn@30:none:none
//! shares/1/link-1-3-cut@7:all:none
//! ```
//!
//! In the name of a link, server 0 is the client.

use std::fmt;

use oblivio_testkit::crash::{
    InjectedFault, Life, Loss, Station, StationFailure, Survival, TrialOutcome,
};

use crate::setups::{Setup, setups};

#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) setup: Setup,
    pub(crate) seed: u64,
    /// The lives of the volume, with one planned fault each.
    pub(crate) lives: Vec<Life>,
}

impl Point {
    pub(crate) fn run(&self) -> Result<TrialOutcome, Loss> {
        self.setup.run(self.seed, &self.lives)
    }

    /// Parses the name of a point.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{name:?} is not the name of a point: {what}");
        let mut parts = name.split('/');
        let setup = parts.next().unwrap_or_default();
        let setup = setups().into_iter().find(|known| known.name == setup).ok_or_else(|| {
            let known: Vec<_> = setups().iter().map(|setup| setup.name).collect();
            wrong(&format!("its setup is not one of {}", known.join(", ")))
        })?;
        let seed = parts.next().and_then(|seed| seed.parse().ok());
        let seed = seed.ok_or_else(|| wrong("the part after the setup must be a seed"))?;
        let lives: Option<Vec<_>> = parts.map(parse_life).collect();
        let lives = lives.filter(|lives| !lives.is_empty());
        let lives = lives.ok_or_else(|| wrong("each life must be FAULT@N:STORE:DIRECTORY"))?;
        Ok(Self { setup, seed, lives })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.setup.name, self.seed)?;
        for Life { faults, store, dir } in &self.lives {
            let (fault, n) = faults.first().map_or_else(|| ("none".into(), 0), fault_name);
            write!(f, "/{fault}@{n}:{}:{}", survival_name(*store), survival_name(*dir))?;
        }
        Ok(())
    }
}

pub(crate) fn fault_name(fault: &InjectedFault) -> (String, u64) {
    let (name, n) = match *fault {
        InjectedFault::CrashAt(n) => ("crash", n),
        InjectedFault::FailAt(n) => ("fail", n),
        InjectedFault::FailEvery(n) => ("fail-every", n),
        InjectedFault::DiskFullAt(n) => ("full", n),
        InjectedFault::DiskFullFrom(n) => ("full-from", n),
        InjectedFault::StoreDiesAt(n, survival) => {
            return (format!("store-dies-{}", survival_name(survival)), n);
        }
        InjectedFault::StationAt(station, n, failure) => {
            let station = match station {
                Station::Disk { server } => format!("server-{server}"),
                Station::Link { from, to } => format!("link-{from}-{to}"),
            };
            return (format!("{station}-{}", failure_name(failure)), n);
        }
    };
    (name.into(), n)
}

fn failure_name(failure: StationFailure) -> String {
    match failure {
        StationFailure::Lost => "lost".into(),
        StationFailure::Cut => "cut".into(),
        StationFailure::Dies(survival) => format!("dies-{}", survival_name(survival)),
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
        "crash" => InjectedFault::CrashAt(n),
        "fail" => InjectedFault::FailAt(n),
        "fail-every" if n > 0 => InjectedFault::FailEvery(n),
        "full" => InjectedFault::DiskFullAt(n),
        "full-from" => InjectedFault::DiskFullFrom(n),
        _ => match fault.strip_prefix("store-dies-") {
            Some(mode) => InjectedFault::StoreDiesAt(n, survival(mode)?),
            None => parse_at_station(fault, n)?,
        },
    };
    let mut survival = || survival(parts.next()?);
    let (store, dir) = (survival()?, survival()?);
    parts.next().is_none().then_some(Life { faults: vec![fault], store, dir })
}

fn parse_at_station(fault: &str, n: u64) -> Option<InjectedFault> {
    let mut parts = fault.splitn(3, '-');
    let mut next = || parts.next();
    let (station, failure) = match next()? {
        "server" => (Station::Disk { server: next()?.parse().ok()? }, next()?),
        "link" => {
            let from = next()?.parse().ok()?;
            let (to, failure) = next()?.split_once('-')?;
            (Station::Link { from, to: to.parse().ok()? }, failure)
        }
        _ => return None,
    };
    let failure = match (failure, station) {
        ("lost", Station::Link { .. }) => StationFailure::Lost,
        ("cut", Station::Link { .. }) => StationFailure::Cut,
        _ => StationFailure::Dies(survival(failure.strip_prefix("dies-")?)?),
    };
    let is_sound = match station {
        Station::Disk { server } => server > 0,
        Station::Link { from, to } => from != to,
    };
    is_sound.then_some(InjectedFault::StationAt(station, n, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_names_its_point_and_nothing_else_does() {
        for name in [
            "sync-at-flush/2/crash@117:torn:all/fail-every@20:none:some",
            "remote/1/store-dies-torn@3:all:none",
            "shares/1/server-2-dies-torn@3:all:none/crash@2:none:some",
            "shares/1/link-0-2-lost@3:all:none/link-3-1-cut@2:none:some",
            "shares-five/1/link-4-0-dies-none@3:all:none",
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
            "shares/1/server-2-lost@3:all:none",
            "shares/1/server-0-dies-all@3:all:none",
            "shares/1/link-2-2-lost@3:all:none",
            "shares/1/link-2-lost@3:all:none",
        ] {
            assert!(Point::parse(wrong).is_err(), "{wrong}");
        }
    }
}
