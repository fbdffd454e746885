//! Fuzzes URLs of object stores, and files with credentials.
//!
//! ```text
//! input = service, bytes
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_store::ObjectLocation;
use oblivio_store::object_location::ObjectService;
use oblivio_store::objects::s3::Credentials;

fuzz_target!(|input: &[u8]| {
    let Some((service, bytes)) = input.split_first() else { return };
    let service = ObjectService::ALL[usize::from(*service) % ObjectService::ALL.len()];
    if let Ok(location) = ObjectLocation::parse(service, bytes) {
        let shown = location.to_string();
        let (_, rest) = shown.split_once("://").unwrap();
        assert_eq!(ObjectLocation::parse(service, rest.as_bytes()), Ok(location));
    }
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = Credentials::parse(service, text);
    }
});
