//! Fuzzes URLs of object stores, and files with credentials.
//!
//! ```text
//! input = service, bytes
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_store::CloudLocation;
use oblivio_store::cloud_location::CloudService;
use oblivio_store::objects::s3::Credentials;

fuzz_target!(|input: &[u8]| {
    let Some((service, bytes)) = input.split_first() else { return };
    let service = CloudService::ALL[usize::from(*service) % CloudService::ALL.len()];
    if let Ok(location) = CloudLocation::parse(service, bytes) {
        let shown = location.to_string();
        let (_, rest) = shown.split_once("://").unwrap();
        assert_eq!(CloudLocation::parse(service, rest.as_bytes()), Ok(location));
    }
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = Credentials::parse(service, text);
    }
});
