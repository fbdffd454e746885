//! The store of a durable array.

use alloc::boxed::Box;
use core::any::Any;

use crate::store::BucketStore;

/// A store that can hold a durable array. A scheme that works on only one type of store downcasts
/// the store to this type, through [`Any`].
pub trait VolumeStore: BucketStore + Any + Send {}

impl<S: BucketStore + Any + Send> VolumeStore for S {}

/// A store of any type, as arrays own it.
pub type AnyStore = Box<dyn VolumeStore>;
