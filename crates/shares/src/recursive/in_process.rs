//! All servers in the process of the client: to try the scheme, and to test it. They hide nothing from who runs it.

use std::fmt::{self, Display};

use chacha20::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use zeroize::Zeroizing;

use super::levels::Levels;
use super::servers::{Answers, Ask, Asked, Servers};
use crate::client::ClientError;
use crate::field::Field;
use crate::message::Evict;
use crate::server::{Refused, Server};
use crate::sharing::{Parties, Seed};

/// All servers of all trees.
pub struct InProcess<F: Field> {
    parties: Parties,
    /// Of each tree, those of all numbers.
    trees: Vec<Vec<Server<F>>>,
    /// From what servers draw what they deal.
    coins: ChaCha20Rng,
}

/// Why an access was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The client has not gone on.
    Client(ClientError),
    /// A server has refused.
    Refused(Refused),
}

impl Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for AccessError {}

impl From<ClientError> for AccessError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Refused> for AccessError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

const NOT_FOR_ALL: Refused =
    Refused("each server is sent a message of its own, of a tree that there is");

impl<F: Field> InProcess<F> {
    /// Servers of these trees, which hold nothing.
    ///
    /// # Errors
    /// Those of [`Server::with_metadata`].
    pub fn new(
        parties: Parties,
        levels: &Levels,
        coins: &mut dyn CryptoRng,
    ) -> Result<Self, Refused> {
        let trees = levels.iter().map(|level| {
            let server = |number| {
                let (tree, metadata) = (level.tree, level.metadata_elements);
                Server::with_metadata(number, parties, tree, level.slot_elements(), metadata)
            };
            parties.numbers().map(server).collect::<Result<Vec<_>, _>>()
        });
        let trees = trees.collect::<Result<_, _>>()?;
        let mut seed = Zeroizing::new(Seed::default());
        coins.fill_bytes(&mut *seed);
        Ok(Self { parties, trees, coins: ChaCha20Rng::from_seed(*seed) })
    }

    fn carry_out(&mut self, asked: Asked<F::Element>) -> Result<Answers<F::Element>, Refused> {
        let Asked { tree, ask } = asked;
        let parties = self.parties;
        let servers = self.trees.get_mut(tree).ok_or(NOT_FOR_ALL)?;
        let are_for_all =
            |count: usize| (count == parties.servers()).then_some(()).ok_or(NOT_FOR_ALL);
        let of = |shares: Result<Vec<_>, Refused>| {
            shares.map(|shares| Answers {
                numbers: parties.numbers().take(shares.len()).collect(),
                shares,
            })
        };
        match ask {
            Ask::Metadata(leaf) => {
                let enough = servers.iter().take(parties.colluding() + 1);
                of(enough.map(|server| server.metadata(leaf)).collect())
            }
            Ask::Select(selects) => {
                are_for_all(selects.len())?;
                let answers = servers.iter_mut().zip(selects).map(|(it, select)| it.select(select));
                let mut answers = answers.collect::<Result<Vec<_>, _>>()?;
                answers.truncate(parties.for_product());
                of(Ok(answers))
            }
            Ask::Write(writes) => {
                are_for_all(writes.len())?;
                servers.iter_mut().zip(writes).try_for_each(|(it, write)| it.write(write))?;
                Ok(Answers::default())
            }
            Ask::Evict(evictions) => {
                are_for_all(evictions.len())?;
                evict(parties, servers, evictions, &mut self.coins)?;
                Ok(Answers::default())
            }
        }
    }
}

/// The rounds between the servers (Subroutine 3, steps 18 to 25).
fn evict<F: Field>(
    parties: Parties,
    servers: &mut [Server<F>],
    evictions: Vec<Evict<F::Element>>,
    coins: &mut dyn CryptoRng,
) -> Result<(), Refused> {
    servers.iter_mut().zip(evictions).try_for_each(|(it, evict)| it.begin_eviction(evict))?;
    let dealers: Vec<u8> = parties.numbers().take(parties.for_product()).collect();
    let mut is_over = false;
    while !is_over {
        let dealt = servers.iter().take(dealers.len()).map(|server| server.deal(coins));
        let mut dealt: Vec<_> =
            dealt.map(|dealt| dealt.map(Vec::into_iter)).collect::<Result<_, _>>()?;
        for server in &mut *servers {
            let to_it = dealt.iter_mut().filter_map(Iterator::next).collect();
            is_over = server.reduce(&dealers, to_it)?;
        }
    }
    servers.iter_mut().try_for_each(|server| server.agree(server.epoch().evictions))
}

impl<F: Field> Servers<F::Element> for InProcess<F> {
    type Error = AccessError;

    fn trip(
        &mut self,
        asked: Vec<Asked<F::Element>>,
    ) -> Result<Vec<Answers<F::Element>>, AccessError> {
        let answers = asked.into_iter().map(|asked| self.carry_out(asked));
        Ok(answers.collect::<Result<_, _>>()?)
    }
}
