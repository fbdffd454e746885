//! The store of a durable array.

use alloc::boxed::Box;
use core::any::Any;

use crate::store::BucketStore;

/// A store that a durable scheme may keep. A scheme that needs one kind of store downcasts it to
/// that kind, through [`Any`].
pub trait VolumeStore: BucketStore + Any + Send {}

impl<S: BucketStore + Any + Send> VolumeStore for S {}

/// A store of any kind.
pub type AnyStore = Box<dyn VolumeStore>;
