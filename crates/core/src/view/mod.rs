//! The adversary's view: what storage sees, recorded.
