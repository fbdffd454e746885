//! Keys as text: a public key, an allow file and a key file from the fuzzer.
//!
//! A key or list that can be read survives a round trip.
#![no_main]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use oblivio_wire::keys::{AllowedClient, PublicKey, SecretKey, allowed_clients};
use oblivio_wire::message::check_name;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().unwrap());

fuzz_target!(|input: &[u8]| {
    is_a_key_file_or_none(input);
    let Ok(text) = str::from_utf8(input) else { return };
    if let Ok(key) = text.parse::<PublicKey>() {
        assert_eq!(key.to_string().parse::<PublicKey>().unwrap(), key);
    }
    if let Ok(clients) = allowed_clients(text) {
        let copy: String = clients.iter().map(line).collect();
        assert_eq!(allowed_clients(&copy).unwrap(), clients);
        for (i, client) in clients.iter().enumerate() {
            check_name(&client.name).unwrap();
            let others = &clients[i + 1..];
            assert!(others.iter().all(|it| it.key != client.key && it.name != client.name));
        }
    }
});

fn line(client: &AllowedClient) -> String {
    let quota = client.quota_bytes.map_or(String::new(), |bytes| format!(" quota={bytes}"));
    format!("{} {}{quota}\n", client.key, client.name)
}

fn is_a_key_file_or_none(bytes: &[u8]) {
    let [path, copy] = ["key", "copy"].map(|name| FOLDER.path().join(name));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    file.write_all(bytes).unwrap();
    if let Ok(key) = SecretKey::read(&path) {
        key.write(&copy).unwrap();
        assert_eq!(SecretKey::read(&copy).unwrap().public(), key.public());
        fs::remove_file(copy).unwrap();
    }
}
