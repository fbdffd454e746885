//! A disk that outlives the program: created, used, closed and opened again; and the error for a
//! wrong key.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints what it does, and may panic"
)]

use std::error::Error;

use oblivio::{ErrorKind, Secret, VolumeLocation};

fn main() -> Result<(), Box<dyn Error>> {
    // Storage may be anywhere, but the client's directory must not be on storage. By default it is
    // below the user's home directory (see `with_state`).
    let folder = tempfile::tempdir()?;
    let location = VolumeLocation::new(folder.path().join("disk.obl"))?
        .with_state(folder.path().join("state"));

    // 32 secret random bytes. Keep them: nothing else opens the volume.
    let mut key = [0; 32];
    getrandom(&mut key)?;
    let secret = Secret::key_file(&key);

    let volume = location.create(&secret, 16 << 20)?;
    volume.write_at(b"written somewhere", 1_000_000)?;
    volume.flush()?; // from here on it survives a crash
    volume.close()?;

    let volume = location.open(&secret)?;
    let mut read = [0; 17];
    volume.read_at(&mut read, 1_000_000)?;
    println!("read: {}", String::from_utf8_lossy(&read));
    assert_eq!(&read, b"written somewhere");

    // A volume can be open only once.
    let second = location.open(&secret).err().ok_or("the volume was opened twice")?;
    println!("a second one: {second}");
    assert_eq!(second.kind(), ErrorKind::Locked);
    volume.close()?;

    let wrong = location.open(&Secret::key_file(&[0; 32])).err().ok_or("a wrong key opens it")?;
    println!("with another key: {wrong}");
    assert_eq!(wrong.kind(), ErrorKind::WrongKey);
    Ok(())
}

fn getrandom(bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
