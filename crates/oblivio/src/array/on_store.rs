//! An ORAM of any scheme together with its store.

use std::any::Any;

use oblivio_core::front::{Front, SchemeConfig};
use oblivio_core::scheme::{PathScheme, RawScheme, Scheme};
use oblivio_core::{
    BucketStore, Error, FlatOram, FreecursiveConfig, FreecursiveOram, Sealer, rand_core::CryptoRng,
};

/// A store whose concrete type can be recovered.
pub(super) trait AnyStore: BucketStore + Any + Send {}

impl<S: BucketStore + Any + Send> AnyStore for S {}

/// An ORAM that gives access to its store.
pub(super) trait OramOnStore: Front + Send {
    fn store_mut(&mut self) -> &mut dyn AnyStore;

    fn into_store(self: Box<Self>) -> Box<dyn AnyStore>;
}

/// An empty ORAM on a store that was never written to. `map` configures the map of positions and
/// authentication tags; without it, there are no tags, and the positions are a table on the client.
pub(super) fn on_store(
    scheme: &SchemeConfig,
    map: Option<&FreecursiveConfig>,
    sealer: Sealer,
    store: impl AnyStore,
    coins: impl CryptoRng + Send + 'static,
) -> Result<Box<dyn OramOnStore>, Error> {
    match scheme {
        SchemeConfig::Path(tree) => behind(map, PathScheme::new(tree, sealer, store)?, coins),
        SchemeConfig::Raw(config) => behind(map, RawScheme::new(config, sealer, store)?, coins),
    }
}

fn behind(
    map: Option<&FreecursiveConfig>,
    scheme: impl SchemeOnStore + 'static,
    coins: impl CryptoRng + Send + 'static,
) -> Result<Box<dyn OramOnStore>, Error> {
    Ok(match map {
        Some(map) => Box::new(FreecursiveOram::new(map, scheme, coins)?),
        None => Box::new(FlatOram::new(scheme, coins)?),
    })
}

/// A scheme that gives access to its store.
trait SchemeOnStore: Scheme + Send {
    fn store_mut(&mut self) -> &mut dyn AnyStore;

    fn into_store(self) -> Box<dyn AnyStore>;
}

macro_rules! schemes {
    ($($scheme:ident),*) => {$(
        impl<S: AnyStore> SchemeOnStore for $scheme<S> {
            fn store_mut(&mut self) -> &mut dyn AnyStore {
                $scheme::<S>::store_mut(self)
            }

            fn into_store(self) -> Box<dyn AnyStore> {
                Box::new($scheme::<S>::into_store(self))
            }
        }
    )*};
}

schemes!(PathScheme, RawScheme);

macro_rules! front_ends {
    ($($front:ident),*) => {$(
        impl<S: SchemeOnStore, R: CryptoRng + Send> OramOnStore for $front<S, R> {
            fn store_mut(&mut self) -> &mut dyn AnyStore {
                self.scheme_mut().store_mut()
            }

            fn into_store(self: Box<Self>) -> Box<dyn AnyStore> {
                self.into_scheme().into_store()
            }
        }
    )*};
}

front_ends!(FlatOram, FreecursiveOram);
