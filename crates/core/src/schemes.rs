//! The lists of all schemes. All code that is needed once per scheme is generated from these lists.

/// Passes a list of schemes to the macro `$callback`, one `Variant module` pair per scheme.
///
/// | list | schemes |
/// |---|---|
/// | `tree` | schemes of arrays in memory: [`TreeScheme`] |
/// | `volume` | schemes that carry a volume: [`VolumeScheme`]. Each is a [`DurableScheme`] |
///
/// A caller generates an item from each pair, such as a module of tests. If a scheme in the list
/// has no such module, the caller does not compile.
///
/// ```
/// macro_rules! names {
///     ($($scheme:ident $module:ident),*) => { [$(stringify!($module)),*] };
/// }
/// assert_eq!(oblivio_core::schemes!(tree => names), ["path", "raw", "rotating"]);
/// ```
///
/// [`DurableScheme`]: crate::durable::DurableScheme
/// [`TreeScheme`]: crate::schemes::TreeScheme
/// [`VolumeScheme`]: crate::schemes::VolumeScheme
#[macro_export]
macro_rules! schemes {
    (tree => $callback:ident) => {
        $callback! { Path path, Raw raw, Rotating rotating }
    };
    (volume => $callback:ident) => {
        $callback! { Raw raw, Range range, Scan scan, S3Oram s3oram }
    };
}

macro_rules! tree_scheme {
    ($($scheme:ident $module:ident),*) => {
        /// A scheme of arrays in memory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TreeScheme {
            $(
                #[doc = concat!("The scheme of the module `scheme::", stringify!($module), "`.")]
                $scheme,
            )*
        }

        impl TreeScheme {
            /// Every scheme.
            pub const ALL: &'static [Self] = &[$(Self::$scheme),*];
        }
    };
}

macro_rules! volume_scheme {
    ($($scheme:ident $module:ident),*) => {
        /// A scheme that carries a volume. S³ORAM's implementation is in a crate of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum VolumeScheme {
            $(
                #[doc = concat!("The scheme whose modules are named `", stringify!($module), "`.")]
                $scheme,
            )*
        }

        impl VolumeScheme {
            /// Every scheme. The first is the default of new volumes.
            pub const ALL: &'static [Self] = &[$(Self::$scheme),*];
        }
    };
}

schemes!(tree => tree_scheme);
schemes!(volume => volume_scheme);
