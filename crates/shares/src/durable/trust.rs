//! Decides which servers deal in evictions: only servers that have not, since their last repair,
//! given a wrong answer or been replaced because of damaged shares.
//!
//! A wrong share in an answer is ignored, or makes an access fail. A wrong share that a server
//! deals becomes part of the secret on all servers. So the first wrong answer of a server puts it
//! on a list, which is durable before the next eviction. A repair removes it from the list.
//!
//! The choice of dealers reveals nothing about accesses: a server's share of a query is uniform. So
//! whether wrong shares on a path make the server's answer wrong does not depend on the selected
//! slot.

use oblivio_core::durable::WrongServers;
use oblivio_core::{Error, StoreError, StoreErrorKind};

use crate::servers::ShareServers;
use crate::sharing::Parties;

/// The servers of an array that have given wrong answers.
pub(super) struct Trust {
    /// The number of wrong answers of each server since the array was opened.
    answers: Vec<u64>,
    /// For each server, whether it has given a wrong answer, or was replaced as a dealer because it
    /// found its own shares damaged, and was not repaired since.
    is_wrong: Vec<bool>,
    /// For each server, whether it is on the list.
    is_listed: Vec<bool>,
    list: Option<Box<dyn WrongServers>>,
}

impl Trust {
    /// Trusts all `count` servers. Until [`Self::use_list`], findings are kept only in memory.
    pub(super) fn new(count: usize) -> Self {
        let [is_wrong, is_listed] = [(); 2].map(|()| vec![false; count]);
        Self { answers: vec![0; count], is_wrong, is_listed, list: None }
    }

    /// Distrusts the servers on `list`, and adds servers found later to it.
    pub(super) fn use_list(&mut self, list: Box<dyn WrongServers>) {
        for server in list.listed() {
            if let Some(is_wrong) = self.is_wrong.get_mut(server) {
                *is_wrong = true;
                self.is_listed[server] = true;
            }
        }
        self.list = Some(list);
    }

    /// Records that these servers gave wrong answers.
    ///
    /// # Errors
    /// The errors of the list. No eviction may follow until the list is complete.
    pub(super) fn record_wrong(
        &mut self,
        servers: &dyn ShareServers,
        numbers: &[u8],
    ) -> Result<(), Error> {
        for server in numbers.iter().map(|number| usize::from(*number) - 1) {
            self.answers[server] += 1;
            self.list_wrong(servers, server)?;
        }
        Ok(())
    }

    /// Replaces a dealer that found its own shares damaged. Returns whether another server deals in
    /// its place from now on.
    ///
    /// # Errors
    /// The errors of the list. No eviction may follow until the list is complete.
    pub(super) fn replace_dealer(
        &mut self,
        servers: &dyn ShareServers,
        parties: Parties,
        server: usize,
    ) -> Result<bool, Error> {
        let trusted = self.is_wrong.iter().filter(|is_wrong| !**is_wrong).count();
        if self.is_wrong[server] || trusted <= parties.for_product() {
            return Ok(false);
        }
        self.list_wrong(servers, server).map(|()| true)
    }

    fn list_wrong(&mut self, servers: &dyn ShareServers, server: usize) -> Result<(), Error> {
        self.is_wrong[server] = true;
        self.complete_list(servers)
    }

    /// Adds all wrong servers to the list that are not on it yet. An earlier attempt to add them
    /// may have failed.
    fn complete_list(&mut self, servers: &dyn ShareServers) -> Result<(), Error> {
        let Some(list) = &mut self.list else { return Ok(()) };
        for (server, is_listed) in self.is_listed.iter_mut().enumerate() {
            if self.is_wrong[server] && !*is_listed {
                list.add(server, &servers.name(server))?;
                *is_listed = true;
            }
        }
        Ok(())
    }

    /// The numbers of the servers that deal in an eviction.
    ///
    /// # Errors
    /// [`Damaged`](StoreErrorKind::Damaged) if fewer than 2*t* + 1 trusted servers are left, and
    /// the errors of the list if a wrong server cannot be added.
    pub(super) fn dealers(
        &mut self,
        servers: &dyn ShareServers,
        parties: Parties,
    ) -> Result<Vec<u8>, Error> {
        self.complete_list(servers)?;
        let dealers = self.trusted(parties);
        if dealers.len() == parties.for_product() {
            return Ok(dealers);
        }
        let wrong = (0..self.is_wrong.len()).filter(|server| self.is_wrong[*server]);
        let names: Vec<_> = wrong.map(|server| servers.name(server)).collect();
        let message = format!(
            "an eviction needs {} servers with correct shares, and wrong shares were found on {}: \
             an eviction would spread them to all servers. Nothing is lost: {REPAIR}",
            parties.for_product(),
            names.join(", "),
        );
        Err(StoreError::new(StoreErrorKind::Damaged, message).into())
    }

    /// The numbers of the first 2*t* + 1 servers that are not known to be wrong, or of all such
    /// servers if fewer are left.
    fn trusted(&self, parties: Parties) -> Vec<u8> {
        let numbers = parties.numbers().zip(&self.is_wrong);
        let trusted = numbers.filter(|(_, is_wrong)| !**is_wrong).map(|(number, _)| number);
        trusted.take(parties.for_product()).collect()
    }

    /// A human-readable list of the servers that deal.
    pub(super) fn name_dealers(&self, parties: Parties) -> String {
        let trusted = self.trusted(parties);
        trusted.iter().map(|number| format!("server {number}")).collect::<Vec<_>>().join(", ")
    }

    /// Whether any server has given a wrong answer since the array was opened.
    pub(super) fn is_any_answer_wrong(&self) -> bool {
        self.answers.iter().any(|times| *times > 0)
    }

    /// A human-readable description of each server known to be wrong: its number, and how many
    /// wrong answers it has given since the array was opened.
    pub(super) fn wrong_servers(&self) -> Vec<String> {
        let wrong = self.answers.iter().zip(&self.is_wrong).enumerate();
        let wrong = wrong.filter(|(_, (_, is_wrong))| **is_wrong);
        let describe = |(server, (times, _)): (usize, (&u64, _))| match times {
            0 => format!("server {} (before this opening)", server + 1),
            times => format!("server {} ({times} times)", server + 1),
        };
        wrong.map(describe).collect()
    }
}

/// The advice if servers have given wrong answers.
const REPAIR: &str = "rebuild the shares of these servers, one after the other, with `oblivio \
    shares repair` and this client's directory, and open the volume again";

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::message::Request;
    use crate::servers::{Patience, ServerAnswer};

    struct Named(usize);

    impl ShareServers for Named {
        fn count(&self) -> usize {
            self.0
        }

        fn ask(
            &mut self,
            _: u8,
            _: Vec<Option<Request>>,
            _: Patience,
        ) -> Vec<Option<ServerAnswer>> {
            unreachable!("no server gets a request")
        }

        fn begin_retries(&mut self) {}

        fn wait_for_missing(&mut self) {}

        fn wait_for_links(&mut self, _: u32) -> bool {
            false
        }

        fn key(&self, _: usize) -> [u8; 32] {
            [0; 32]
        }

        fn name(&self, server: usize) -> String {
            format!("server {}", server + 1)
        }
    }

    /// A list of wrong servers that refuses entries while its disk is full.
    #[derive(Clone, Default)]
    struct FakeList(Arc<Mutex<Vec<usize>>>, Arc<AtomicBool>);

    impl WrongServers for FakeList {
        fn listed(&self) -> Vec<usize> {
            self.0.lock().unwrap().clone()
        }

        fn add(&mut self, server: usize, _: &str) -> Result<(), Error> {
            if self.1.load(Ordering::SeqCst) {
                return Err(StoreError::new(StoreErrorKind::Full, "no room").into());
            }
            self.0.lock().unwrap().push(server);
            Ok(())
        }
    }

    #[test]
    fn no_eviction_follows_before_a_wrong_server_is_on_the_list() {
        let (parties, list) = (Parties::new(5, 1).unwrap(), FakeList::default());
        let servers = &Named(5);
        let mut trust = Trust::new(5);
        trust.use_list(Box::new(list.clone()));
        list.1.store(true, Ordering::SeqCst);
        trust.record_wrong(servers, &[2]).unwrap_err();
        trust.dealers(servers, parties).unwrap_err();
        list.1.store(false, Ordering::SeqCst);
        assert_eq!(trust.dealers(servers, parties).unwrap(), [1, 3, 4]);
        assert_eq!(list.listed(), [1]);
    }

    #[test]
    fn wrong_servers_do_not_deal_until_too_few_servers_are_left() {
        let (parties, list) = (Parties::new(5, 1).unwrap(), FakeList::default());
        let servers = &Named(5);
        let mut trust = Trust::new(5);
        trust.use_list(Box::new(list.clone()));
        assert_eq!(trust.dealers(servers, parties).unwrap(), [1, 2, 3]);
        trust.record_wrong(servers, &[2]).unwrap();
        trust.record_wrong(servers, &[2]).unwrap();
        assert_eq!(trust.dealers(servers, parties).unwrap(), [1, 3, 4]);
        assert_eq!(
            (list.listed(), trust.wrong_servers()),
            (vec![1], vec!["server 2 (2 times)".into()])
        );
        // After a reopening, only the list tells.
        let mut trust = Trust::new(5);
        trust.use_list(Box::new(list.clone()));
        assert!(!trust.is_any_answer_wrong());
        assert_eq!(trust.wrong_servers(), ["server 2 (before this opening)"]);
        assert!(trust.replace_dealer(servers, parties, 3).unwrap());
        assert_eq!(trust.dealers(servers, parties).unwrap(), [1, 3, 5]);
        // Server 4 is already replaced, and no other server is left to replace server 5.
        assert!(!trust.replace_dealer(servers, parties, 3).unwrap());
        assert!(!trust.replace_dealer(servers, parties, 4).unwrap());
        trust.record_wrong(servers, &[1]).unwrap();
        let error = trust.dealers(servers, parties).unwrap_err();
        assert_eq!(error.store_kind(), Some(StoreErrorKind::Damaged));
        assert!(error.to_string().contains("server 1, server 2, server 4"), "{error}");
        assert_eq!(list.listed(), [1, 3, 0]);
    }
}
