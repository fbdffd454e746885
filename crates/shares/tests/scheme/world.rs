//! A client and its servers, which exchange messages directly. Messages to servers can be recorded.

use oblivio_shares::client::{Client, ClientError};
use oblivio_shares::field::Field;
use oblivio_shares::message::{DealtShares, Evict, RootWrite, Select, Slots};
use oblivio_shares::server::Server;
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::Tree;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The number of slots that are loaded with one message. A leaf of 16 or 24 slots takes two or
/// three messages.
pub(crate) const LOADED_AT_ONCE: usize = 8;

pub(crate) struct World<F: Field> {
    pub(crate) client: Client<F>,
    pub(crate) servers: Vec<Server<F>>,
    pub(crate) coins: StdRng,
    /// The 2t + 1 servers whose answers the client uses.
    pub(crate) answering: Vec<u8>,
    /// The 2t + 1 servers that deal in evictions.
    pub(crate) dealing: Vec<u8>,
    /// The messages that each server received, in order; `None` if they are not recorded.
    pub(crate) seen: Option<Vec<Vec<SentMessage<F::Element>>>>,
}

/// A message that a server received.
#[derive(Clone, Debug)]
pub(crate) enum SentMessage<E> {
    Load(Slots, Share<E>),
    Select(Select<E>),
    Write(RootWrite<E>),
    Evict(Evict<E>),
    /// A message from the dealer with this number.
    Dealt(u8, DealtShares<E>),
}

/// The kind of data that a message shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Leaves,
    Queries,
    Blocks,
    Matrices,
    Dealt,
}

impl<E: Copy> SentMessage<E> {
    pub(crate) fn shares(&self) -> (Kind, Vec<&Share<E>>) {
        match self {
            Self::Load(_, share) => (Kind::Leaves, vec![share]),
            Self::Select(select) => (Kind::Queries, vec![&select.query]),
            Self::Write(write) => (Kind::Blocks, vec![&write.block]),
            Self::Evict(evict) => (Kind::Matrices, evict.matrices.iter().collect()),
            Self::Dealt(_, dealt) => (Kind::Dealt, dealt.shares.iter().collect()),
        }
    }

    /// The elements of each share in the message, as the server expands them.
    pub(crate) fn expanded<F: Field<Element = E>>(
        &self,
        tree: Tree,
        block_elements: usize,
    ) -> Vec<Vec<E>> {
        let (kind, shares) = self.shares();
        let elements = match kind {
            Kind::Leaves => LOADED_AT_ONCE * block_elements,
            Kind::Dealt => tree.slots() * block_elements,
            Kind::Queries => tree.path_slots(),
            Kind::Blocks => block_elements,
            Kind::Matrices => 2 * tree.slots() * tree.slots(),
        };
        shares.into_iter().map(|it| it.clone().into_elements::<F>(elements).unwrap()).collect()
    }
}

impl<F: Field> World<F> {
    pub(crate) fn new(
        parties: Parties,
        tree: Tree,
        blocks: usize,
        block_elements: usize,
        seed: u64,
    ) -> Self {
        let client = Client::new(parties, tree, blocks, block_elements).unwrap();
        let server = |number| Server::new(number, parties, tree, block_elements).unwrap();
        let enough: Vec<u8> = parties.numbers().take(parties.for_product()).collect();
        Self {
            client,
            servers: parties.numbers().map(server).collect(),
            coins: StdRng::seed_from_u64(seed),
            answering: enough.clone(),
            dealing: enough,
            seen: None,
        }
    }

    /// Loads data into the new tree, on all servers.
    pub(crate) fn load(&mut self, mut block: impl FnMut(usize, &mut [F::Element])) {
        let Self { client, servers, coins, seen, .. } = self;
        let block = |address, data: &mut [F::Element]| {
            block(address, data);
            Ok(data.iter().any(|element| *element != F::ZERO))
        };
        let send = |slots, shares: Vec<Share<F::Element>>| {
            if let Some(seen) = seen {
                let loads = shares.iter().cloned().map(|share| SentMessage::Load(slots, share));
                seen.iter_mut().zip(loads).for_each(|(seen, load)| seen.push(load));
            }
            for (server, share) in servers.iter_mut().zip(shares) {
                server.load(slots, share).unwrap();
            }
            Ok::<_, ClientError>(())
        };
        client.load(LOADED_AT_ONCE, coins, block, send).unwrap();
    }

    /// Records the messages to servers from now on.
    pub(crate) fn watched(mut self) -> Self {
        self.seen = Some(vec![Vec::new(); self.servers.len()]);
        self
    }

    /// Reads a block, and writes it back or replaces it with `data`.
    pub(crate) fn access(
        &mut self,
        address: usize,
        data: Option<&[F::Element]>,
    ) -> Vec<F::Element> {
        let (selected, queries) = self.client.select(address, &mut self.coins).unwrap();
        self.note(queries.iter().cloned().map(SentMessage::Select));
        let answers = self
            .servers
            .iter_mut()
            .zip(queries)
            .map(|(server, query)| server.select(query).unwrap());
        let answers: Vec<_> = answers.collect();
        let used: Vec<_> =
            self.answering.iter().map(|number| answers[usize::from(*number) - 1].clone()).collect();
        let block = self.client.recover(&self.answering, &used).unwrap().block;
        let writes = self.client.write(&selected, data.unwrap_or(&block), &mut self.coins).unwrap();
        self.note(writes.iter().cloned().map(SentMessage::Write));
        for (server, write) in self.servers.iter_mut().zip(writes) {
            server.write(write).unwrap();
        }
        if self.client.must_evict() {
            self.evict();
        }
        block
    }

    pub(crate) fn evict(&mut self) {
        let evictions = self.client.evict(&mut self.coins).unwrap();
        self.note(evictions.iter().cloned().map(SentMessage::Evict));
        for (server, evict) in self.servers.iter_mut().zip(evictions) {
            server.begin_eviction(evict).unwrap();
        }
        let mut is_over = false;
        while !is_over {
            let dealing = self.dealing.clone();
            let dealt: Vec<_> = dealing
                .iter()
                .map(|dealer| self.servers[usize::from(*dealer) - 1].deal(&mut self.coins).unwrap())
                .collect();
            for i in 0..self.servers.len() {
                let got: Vec<_> = dealt.iter().map(|dealt| dealt[i].clone()).collect();
                if let Some(seen) = &mut self.seen {
                    let from = dealing.iter().copied().zip(got.iter().cloned());
                    seen[i].extend(from.map(|(dealer, dealt)| SentMessage::Dealt(dealer, dealt)));
                }
                is_over = self.servers[i].reduce(&dealing, got).unwrap();
            }
        }
        let evictions = self.client.evictions();
        self.servers.iter_mut().for_each(|server| server.commit(evictions).unwrap());
    }

    fn note(&mut self, sent: impl Iterator<Item = SentMessage<F::Element>>) {
        if let Some(seen) = &mut self.seen {
            seen.iter_mut().zip(sent).for_each(|(seen, sent)| seen.push(sent));
        }
    }
}
