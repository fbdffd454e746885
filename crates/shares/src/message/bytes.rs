//! The encoding of messages. `docs/protocol.md` in the repository lists them.
//!
//! Received bytes are untrusted: lengths are checked before memory is allocated, and each message
//! has exactly one encoding.

use oblivio_core::durable::section::Fields;
use oblivio_core::{BucketId, Error, ErrorKind, Leaf, StoreErrorKind};

use super::{
    Answer, DealtShares, Evict, HostEpoch, Refusal, Request, Select, ServerKey, Setup, Slots,
    TREES_MAX, TreePoint,
};
use crate::sharing::{Parties, Seed, Share};
use crate::tree::{Preset, Tree};

/// The maximum number of bytes of a shared block: its length is encoded in three bytes.
pub const BLOCK_BYTES_MAX: usize = (16 << 20) - 1;

/// The maximum number of bytes of a server's files: a PiB.
const FILES_BYTES_MAX: u128 = 1 << 50;

/// The maximum number of bytes of the matrices of an eviction. With their framing they fit in a
/// message of 32 MiB.
const MATRICES_BYTES_MAX: u128 = (32 << 20) - (64 << 10);

/// The maximum number of shares in one message. An eviction of the highest tree has this number of
/// matrices; a round of an eviction has fewer shares.
const SHARES_MAX: usize = crate::tree::HEIGHT_MAX as usize + 1;

const SETUP: u8 = 1;
const EPOCH: u8 = 2;
const SELECT: u8 = 3;
const WRITE: u8 = 4;
const EVICT: u8 = 5;
const ROLL_BACK: u8 = 6;
const FETCH: u8 = 7;
const PUT: u8 = 8;
const SET_POINT: u8 = 9;
const DEALT: u8 = 10;
const CONNECT: u8 = 11;
const IN_TREE: u8 = 12;
const METADATA: u8 = 13;

const DONE: u8 = 1;
const AT: u8 = 2;
const SHARE: u8 = 3;
const REFUSED: u8 = 4;

/// The kinds of refusals. The index of a kind is its encoded number.
const KINDS: [StoreErrorKind; 5] = [
    StoreErrorKind::Failed,
    StoreErrorKind::Refused,
    StoreErrorKind::Unreachable,
    StoreErrorKind::Full,
    StoreErrorKind::Damaged,
];

const DRAWN: u8 = 0;
const COMPUTED: u8 = 1;

impl Request {
    /// Encodes a request for the data tree.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_in(0)
    }

    /// Encodes a request for tree `tree`. The number of the tree comes first, unless it is 0 (the
    /// data).
    pub fn encode_in(&self, tree: u8) -> Vec<u8> {
        let mut out = Vec::new();
        if tree > 0 {
            out.extend([IN_TREE, tree]);
        }
        match self {
            Self::Setup(setup) => {
                out.push(SETUP);
                put_setup(&mut out, setup);
            }
            Self::Epoch => out.push(EPOCH),
            Self::Select { at, select } => {
                out.push(SELECT);
                put_point(&mut out, *at);
                out.extend(select.leaf.0.to_le_bytes());
                put_share(&mut out, &select.query);
            }
            Self::Write { at, block } => {
                out.push(WRITE);
                put_point(&mut out, *at);
                put_share(&mut out, block);
            }
            Self::Evict { evict, dealers } => {
                out.push(EVICT);
                out.extend(evict.number.to_le_bytes());
                out.extend(evict.attempt.to_le_bytes());
                out.push(dealers.iter().fold(0, |mask, number| mask | 1 << (number & 7)));
                put_shares(&mut out, &evict.matrices);
            }
            Self::RollBack { evictions } => {
                out.push(ROLL_BACK);
                out.extend(evictions.to_le_bytes());
            }
            Self::Fetch { at, slots } => {
                out.push(FETCH);
                put_point(&mut out, *at);
                put_slots(&mut out, *slots);
            }
            Self::Put { at, slots, share } => {
                out.push(PUT);
                put_point(&mut out, *at);
                put_slots(&mut out, *slots);
                put_share(&mut out, share);
            }
            Self::Metadata { at, leaf } => {
                out.push(METADATA);
                put_point(&mut out, *at);
                out.extend(leaf.0.to_le_bytes());
            }
            Self::Connect => out.push(CONNECT),
            Self::SetPoint { at } => {
                out.push(SET_POINT);
                put_point(&mut out, *at);
            }
        }
        out
    }

    /// Decodes a request for the data tree.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for an invalid request.
    pub fn decode(message: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(message);
        let request = match fields.u8()? {
            SETUP => Self::Setup(setup(&mut fields)?),
            EPOCH => Self::Epoch,
            CONNECT => Self::Connect,
            SELECT => Self::Select {
                at: point(&mut fields)?,
                select: Select { leaf: Leaf(fields.u64()?), query: share(&mut fields)? },
            },
            WRITE => Self::Write { at: point(&mut fields)?, block: share(&mut fields)? },
            EVICT => {
                let (number, attempt) = (fields.count()?, fields.count()?);
                let mask = fields.u8()?;
                if mask & 1 == 1 {
                    return Err(invalid_message());
                }
                let dealers = (1..8).filter(|number| mask >> number & 1 == 1).collect();
                let matrices = shares(&mut fields)?;
                Self::Evict { evict: Evict { number, attempt, matrices }, dealers }
            }
            ROLL_BACK => Self::RollBack { evictions: fields.count()? },
            FETCH => Self::Fetch { at: point(&mut fields)?, slots: slots(&mut fields)? },
            PUT => Self::Put {
                at: point(&mut fields)?,
                slots: slots(&mut fields)?,
                share: share(&mut fields)?,
            },
            SET_POINT => Self::SetPoint { at: point(&mut fields)? },
            METADATA => Self::Metadata { at: point(&mut fields)?, leaf: Leaf(fields.u64()?) },
            _ => return Err(invalid_message()),
        };
        fields.end().map(|()| request)
    }

    /// Decodes a request and the number of its tree.
    ///
    /// # Errors
    /// The errors of [`Self::decode`].
    pub fn decode_in(message: &[u8]) -> Result<(u8, Self), Error> {
        match message {
            [IN_TREE, tree, message @ ..] if (1..TREES_MAX).contains(tree) => {
                Ok((*tree, Self::decode(message)?))
            }
            message => Ok((0, Self::decode(message)?)),
        }
    }
}

impl Answer {
    /// Encodes the answer.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Done => out.push(DONE),
            Self::Epoch(HostEpoch { at, attempt, is_set_up }) => {
                out.push(AT);
                put_point(&mut out, *at);
                out.extend(attempt.to_le_bytes());
                out.push((*is_set_up).into());
            }
            Self::Share(share) => {
                out.push(SHARE);
                out.extend(share);
            }
            Self::Refused(Refusal { kind, why }) => {
                out.push(REFUSED);
                out.push(KINDS.iter().position(|it| it == kind).unwrap_or_default() as u8);
                out.extend(why.as_bytes());
            }
        }
        out
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for an invalid answer.
    pub fn decode(message: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(message);
        match fields.u8()? {
            DONE => fields.end().map(|()| Self::Done),
            AT => {
                let (at, attempt) = (point(&mut fields)?, fields.u64()?);
                let is_set_up = match fields.u8()? {
                    0 => false,
                    1 => true,
                    _ => return Err(invalid_message()),
                };
                fields.end()?;
                Ok(Self::Epoch(HostEpoch { at, attempt, is_set_up }))
            }
            SHARE => Ok(Self::Share(fields.rest().to_vec())),
            REFUSED => {
                let kind = *KINDS.get(usize::from(fields.u8()?)).ok_or_else(invalid_message)?;
                let why = str::from_utf8(fields.rest()).map_err(|_| invalid_message())?.to_owned();
                Ok(Self::Refused(Refusal { kind, why }))
            }
            _ => Err(invalid_message()),
        }
    }
}

impl DealtShares<u8> {
    /// Encodes the message from server to server.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![DEALT];
        out.extend(self.number.to_le_bytes());
        out.extend(self.attempt.to_le_bytes());
        out.extend(self.tile.to_le_bytes());
        out.push(self.level);
        put_shares(&mut out, &self.shares);
        out
    }

    /// Decodes a message from server to server.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for an invalid message.
    pub fn decode(message: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(message);
        if fields.u8()? != DEALT {
            return Err(invalid_message());
        }
        let (number, attempt) = (fields.u64()?, fields.u64()?);
        let (tile, level) = (fields.u32()?, fields.u8()?);
        let shares = shares(&mut fields)?;
        fields.end()?;
        Ok(Self { number, attempt, tile, level, shares })
    }
}

impl Setup {
    /// Encodes the setup, for a file or a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_setup(&mut out, self);
        out
    }

    /// Decodes a setup.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for an invalid setup.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(bytes);
        let decoded = setup(&mut fields)?;
        fields.end().map(|()| decoded)
    }
}

fn put_setup(out: &mut Vec<u8>, setup: &Setup) {
    let Setup { number, parties, tree, block_bytes, metadata_bytes, keys } = setup;
    out.extend([*number, parties.servers() as u8, parties.colluding() as u8, tree.height()]);
    out.extend((tree.slots() as u16).to_le_bytes());
    out.extend((tree.accesses() as u16).to_le_bytes());
    out.extend(&(*block_bytes as u32).to_le_bytes()[..3]);
    out.push(*metadata_bytes as u8);
    keys.iter().for_each(|key| out.extend(key));
}

fn setup(fields: &mut Fields<'_>) -> Result<Setup, Error> {
    let [number, servers, colluding, height] = fields.array()?;
    let preset = Preset { slots: fields.u16()?, accesses: fields.u16()? };
    let block_bytes = fields.number(3)? as usize;
    let metadata_bytes = usize::from(fields.u8()?);
    let parties = Parties::new(servers, colluding).map_err(|_| invalid_message())?;
    let tree = Tree::new(height, preset).map_err(|_| invalid_message())?;
    let is_sound = parties.are_distinct_servers(&[number])
        && (1..=BLOCK_BYTES_MAX).contains(&block_bytes)
        && metadata_bytes < block_bytes
        && can_be_kept(tree, block_bytes);
    if !is_sound {
        return Err(invalid_message());
    }
    let keys: Vec<ServerKey> =
        parties.numbers().map(|_| fields.array()).collect::<Result<_, _>>()?;
    Ok(Setup { number, parties, tree, block_bytes, metadata_bytes, keys })
}

/// Whether a server's files are within [`FILES_BYTES_MAX`], and the matrices of an eviction fit in
/// a message.
fn can_be_kept(tree: Tree, block_bytes: usize) -> bool {
    let slots = tree.slots() as u128;
    // The root, the buckets between it and the leaves, and two places for each leaf.
    let slots_stored = 2 * tree.accesses() as u128 + 3 * u128::from(tree.leaves()) * slots;
    let matrices = (u128::from(tree.height()) + 1) * 2 * slots * slots;
    slots_stored * block_bytes as u128 <= FILES_BYTES_MAX && matrices <= MATRICES_BYTES_MAX
}

fn put_point(out: &mut Vec<u8>, TreePoint { evictions, written }: TreePoint) {
    out.extend(evictions.to_le_bytes());
    out.extend((written as u16).to_le_bytes());
}

fn point(fields: &mut Fields<'_>) -> Result<TreePoint, Error> {
    Ok(TreePoint { evictions: fields.count()?, written: fields.u16()?.into() })
}

fn put_slots(out: &mut Vec<u8>, Slots { bucket, first, count }: Slots) {
    out.push(bucket.level());
    out.extend(bucket.index().to_le_bytes());
    out.extend((first as u16).to_le_bytes());
    out.extend((count as u16).to_le_bytes());
}

fn slots(fields: &mut Fields<'_>) -> Result<Slots, Error> {
    let (level, index) = (fields.u8()?, fields.u64()?);
    let is_bucket = level <= crate::tree::HEIGHT_MAX && index < 1 << level;
    if !is_bucket {
        return Err(invalid_message());
    }
    let (first, count) = (fields.u16()?.into(), fields.u16()?.into());
    if count == 0 {
        return Err(invalid_message());
    }
    Ok(Slots { bucket: BucketId::on_path(Leaf(index), level), first, count })
}

fn put_share(out: &mut Vec<u8>, share: &Share<u8>) {
    match share {
        Share::Drawn(seed) => {
            out.push(DRAWN);
            out.extend(seed);
        }
        Share::Computed(bytes) => {
            out.push(COMPUTED);
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
    }
}

fn share(fields: &mut Fields<'_>) -> Result<Share<u8>, Error> {
    match fields.u8()? {
        DRAWN => fields.array::<{ size_of::<Seed>() }>().map(Share::Drawn),
        COMPUTED => {
            let bytes = fields.u32()? as usize;
            fields.bytes(bytes).map(|bytes| Share::Computed(bytes.to_vec()))
        }
        _ => Err(invalid_message()),
    }
}

fn put_shares(out: &mut Vec<u8>, shares: &[Share<u8>]) {
    out.push(shares.len() as u8);
    shares.iter().for_each(|share| put_share(out, share));
}

fn shares(fields: &mut Fields<'_>) -> Result<Vec<Share<u8>>, Error> {
    let count = usize::from(fields.u8()?);
    if count > SHARES_MAX {
        return Err(invalid_message());
    }
    (0..count).map(|_| share(fields)).collect()
}

fn invalid_message() -> Error {
    Error::new(ErrorKind::InvalidRequest, "the message violates the protocol of share servers")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_share() -> impl Strategy<Value = Share<u8>> {
        prop_oneof![
            any::<Seed>().prop_map(Share::Drawn),
            any::<Vec<u8>>().prop_map(Share::Computed),
        ]
    }

    fn any_point() -> impl Strategy<Value = TreePoint> {
        (0..1u64 << 62, 0..4096usize)
            .prop_map(|(evictions, written)| TreePoint { evictions, written })
    }

    fn any_slots() -> impl Strategy<Value = Slots> {
        let bucket = (0..=30u8, any::<u64>());
        (bucket, 0..4000usize, 1..96usize).prop_map(|((level, index), first, count)| {
            let bucket = BucketId::on_path(Leaf(index), level);
            Slots { bucket, first, count }
        })
    }

    fn any_setup() -> impl Strategy<Value = Setup> {
        let parties = (3..=7u8, 1..=3u8)
            .prop_filter_map("too many colluding servers", |(of, colluding)| {
                Parties::new(of, colluding).ok()
            });
        let tree = (1..=20u8, 1..=600u16, 1..=600u16).prop_filter_map(
            "the eviction period exceeds the slots of the root",
            |(height, slots, accesses)| Tree::new(height, Preset { slots, accesses }).ok(),
        );
        let bytes = (1..=BLOCK_BYTES_MAX, 0..=12usize)
            .prop_filter("metadata as long as the slot", |(all, metadata)| metadata < all);
        (parties, tree, bytes, 1..=3u8, any::<u8>()).prop_filter_map(
            "too large for a server",
            |(parties, tree, (block_bytes, metadata_bytes), number, byte)| {
                let keys = parties.numbers().map(|number| [number ^ byte; 32]).collect();
                can_be_kept(tree, block_bytes).then_some(Setup {
                    number,
                    parties,
                    tree,
                    block_bytes,
                    metadata_bytes,
                    keys,
                })
            },
        )
    }

    fn any_request() -> impl Strategy<Value = Request> {
        let shares = || prop::collection::vec(any_share(), 0..=SHARES_MAX);
        let dealers = prop::collection::btree_set(1..=7u8, 0..=7);
        prop_oneof![
            any_setup().prop_map(Request::Setup),
            Just(Request::Epoch),
            (any_point(), any::<u64>(), any_share()).prop_map(|(at, leaf, query)| {
                Request::Select { at, select: Select { leaf: Leaf(leaf), query } }
            }),
            (any_point(), any_share()).prop_map(|(at, block)| Request::Write { at, block }),
            ((0..1u64 << 62, 0..1u64 << 62), shares(), dealers).prop_map(
                |((number, attempt), matrices, dealers)| {
                    let evict = Evict { number, attempt, matrices };
                    Request::Evict { evict, dealers: dealers.into_iter().collect() }
                }
            ),
            (0..1u64 << 62).prop_map(|evictions| Request::RollBack { evictions }),
            (any_point(), any_slots()).prop_map(|(at, slots)| Request::Fetch { at, slots }),
            (any_point(), any_slots(), any_share()).prop_map(|(at, slots, share)| Request::Put {
                at,
                slots,
                share
            }),
            any_point().prop_map(|at| Request::SetPoint { at }),
            (any_point(), any::<u64>())
                .prop_map(|(at, leaf)| Request::Metadata { at, leaf: Leaf(leaf) }),
            Just(Request::Connect),
        ]
    }

    fn any_answer() -> impl Strategy<Value = Answer> {
        prop_oneof![
            Just(Answer::Done),
            (any_point(), any::<u64>(), any::<bool>()).prop_map(|(at, attempt, is_set_up)| {
                Answer::Epoch(HostEpoch { at, attempt, is_set_up })
            }),
            any::<Vec<u8>>().prop_map(Answer::Share),
            (0..KINDS.len(), ".{0,60}")
                .prop_map(|(kind, why)| { Answer::Refused(Refusal { kind: KINDS[kind], why }) }),
        ]
    }

    /// A share server's answer is never a report that another client took the volume over. Only the
    /// protocol of bucket servers reports that, because such a report ends this client on all
    /// servers.
    #[test]
    fn no_answer_of_a_share_server_is_fenced() {
        for kind in 0..=u8::MAX {
            if let Ok(Answer::Refused(refusal)) = Answer::decode(&[REFUSED, kind, b'n']) {
                assert_ne!(refusal.kind, StoreErrorKind::Fenced, "{kind}");
                assert!(usize::from(kind) < 5);
            }
        }
        let fenced = Refusal { kind: StoreErrorKind::Fenced, why: String::new() };
        assert_eq!(Answer::Refused(fenced).encode(), [REFUSED, 0]);
    }

    fn any_dealt() -> impl Strategy<Value = DealtShares<u8>> {
        let shares = prop::collection::vec(any_share(), 0..3);
        (any::<[u64; 2]>(), any::<u32>(), any::<u8>(), shares).prop_map(
            |([number, attempt], tile, level, shares)| DealtShares {
                number,
                attempt,
                tile,
                level,
                shares,
            },
        )
    }

    proptest! {
        #[test]
        fn messages_round_trip(
            request in any_request(),
            answer in any_answer(),
            dealt in any_dealt(),
        ) {
            prop_assert_eq!(Request::decode(&request.encode()).unwrap(), request.clone());
            for tree in 0..TREES_MAX {
                let asked = request.encode_in(tree);
                prop_assert_eq!(Request::decode_in(&asked).unwrap(), (tree, request.clone()));
                prop_assert_eq!(Request::decode(&asked).is_ok(), tree == 0);
            }
            prop_assert!(Request::decode_in(&request.encode_in(TREES_MAX)).is_err());
            prop_assert!(
                Request::decode_in(&[&[IN_TREE, 1][..], &request.encode_in(1)].concat()).is_err()
            );
            prop_assert_eq!(Answer::decode(&answer.encode()).unwrap(), answer);
            prop_assert_eq!(DealtShares::decode(&dealt.encode()).unwrap(), dealt);
        }

        /// Each message has exactly one encoding: bytes that decode are what the message encodes
        /// to.
        #[test]
        fn decodable_bytes_are_canonical(
            request in any_request(),
            answer in any_answer(),
            dealt in any_dealt(),
            at: prop::sample::Index,
            byte: u8,
            cut: prop::sample::Index,
        ) {
            let asked = request.encode();
            for mut bytes in
                [request.encode_in(1), asked, answer.encode(), dealt.encode()]
            {
                let place = at.index(bytes.len());
                bytes[place] = byte;
                for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                    if let Ok((tree, request)) = Request::decode_in(bytes) {
                        prop_assert_eq!(request.encode_in(tree), bytes);
                    }
                    if let Ok(answer) = Answer::decode(bytes) {
                        prop_assert_eq!(answer.encode(), bytes);
                    }
                    if let Ok(dealt) = DealtShares::decode(bytes) {
                        prop_assert_eq!(dealt.encode(), bytes);
                    }
                }
            }
        }
    }
}
