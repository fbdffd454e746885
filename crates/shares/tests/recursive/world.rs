//! A client and the servers of all its trees. What each server gets is noted.

use oblivio_core::Leaf;
use oblivio_shares::client::ClientError;
use oblivio_shares::field::Field;
use oblivio_shares::message::{Evict, RootWrite, Select};
use oblivio_shares::recursive::{
    AccessError, Answers, Ask, Asked, InProcess, Levels, RecursiveClient, Servers,
};
use oblivio_shares::sharing::{Parties, Share};
use rand::SeedableRng;
use rand::rngs::StdRng;

pub(crate) struct World<F: Field> {
    pub(crate) client: RecursiveClient<F>,
    pub(crate) servers: Watched<F>,
    pub(crate) coins: StdRng,
}

impl<F: Field> World<F> {
    pub(crate) fn new(parties: Parties, levels: Levels, seed: u64) -> Self {
        let mut coins = StdRng::seed_from_u64(seed);
        let servers = InProcess::new(parties, &levels, &mut coins).unwrap();
        let seen = vec![Vec::new(); parties.servers()];
        let servers = Watched { servers, seen, trips: 0, spoil: |_| () };
        Self { client: RecursiveClient::new(parties, levels).unwrap(), servers, coins }
    }

    pub(crate) fn try_access(
        &mut self,
        address: usize,
        new: Option<&[F::Element]>,
    ) -> Result<Vec<F::Element>, AccessError> {
        let block = self.client.access(address, new, &mut self.servers, &mut self.coins)?;
        Ok(block.to_vec())
    }

    pub(crate) fn access(&mut self, address: usize, new: Option<&[F::Element]>) -> Vec<F::Element> {
        self.try_access(address, new).unwrap()
    }

    /// The error of an access.
    pub(crate) fn refusal(&mut self, address: usize, new: Option<&[F::Element]>) -> ClientError {
        match self.try_access(address, new) {
            Err(AccessError::Client(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

/// Servers, and what they get.
pub(crate) struct Watched<F: Field> {
    servers: InProcess<F>,
    /// Of each server.
    pub(crate) seen: Vec<Vec<Seen<F::Element>>>,
    pub(crate) trips: usize,
    /// What becomes of answers on their way.
    pub(crate) spoil: fn(&mut Vec<Answers<F::Element>>),
}

/// What a server gets, of which tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen<E> {
    pub(crate) trip: usize,
    pub(crate) tree: usize,
    pub(crate) message: Message<E>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message<E> {
    Metadata(Leaf),
    Select(Select<E>),
    Write(RootWrite<E>),
    Evict(Evict<E>),
}

/// What a message has shares of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Nothing,
    Queries,
    Slots,
    Matrices,
}

impl<E: Copy> Seen<E> {
    pub(crate) fn shares(&self) -> (Kind, Vec<&Share<E>>) {
        match &self.message {
            Message::Metadata(_) => (Kind::Nothing, Vec::new()),
            Message::Select(select) => (Kind::Queries, vec![&select.query]),
            Message::Write(write) => (Kind::Slots, vec![&write.block]),
            Message::Evict(evict) => (Kind::Matrices, evict.matrices.iter().collect()),
        }
    }

    /// What they are, as the server expands them.
    pub(crate) fn expanded<F: Field<Element = E>>(&self, levels: &Levels) -> Vec<Vec<E>> {
        let level = levels.iter().nth(self.tree).unwrap();
        let (kind, shares) = self.shares();
        let elements = match kind {
            Kind::Nothing => 0,
            Kind::Queries => level.tree.path_slots(),
            Kind::Slots => level.slot_elements(),
            Kind::Matrices => 2 * level.tree.slots() * level.tree.slots(),
        };
        shares.into_iter().map(|it| it.clone().into_elements::<F>(elements).unwrap()).collect()
    }
}

impl<F: Field> Servers<F::Element> for Watched<F> {
    type Error = AccessError;

    fn trip(
        &mut self,
        asked: Vec<Asked<F::Element>>,
    ) -> Result<Vec<Answers<F::Element>>, AccessError> {
        self.trips += 1;
        for Asked { tree, ask } in &asked {
            for (number, seen) in self.seen.iter_mut().enumerate() {
                let message = match ask {
                    Ask::Metadata(leaf) => Message::Metadata(*leaf),
                    Ask::Select(selects) => Message::Select(selects[number].clone()),
                    Ask::Write(writes) => Message::Write(writes[number].clone()),
                    Ask::Evict(evictions) => Message::Evict(evictions[number].clone()),
                };
                seen.push(Seen { trip: self.trips, tree: *tree, message });
            }
        }
        let mut answers = self.servers.trip(asked)?;
        (self.spoil)(&mut answers);
        Ok(answers)
    }
}
