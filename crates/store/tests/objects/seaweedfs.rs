//! S3 objects on SeaweedFS, a real server.

#![allow(clippy::disallowed_methods, reason = "a real server starts within a time limit")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use oblivio_store::objects::{Answer, ObjectName, Objects, S3Objects, S3Options};
use oblivio_store::{CloudLocation, CloudService};

use crate::contract;
use crate::s3_server::{BUCKET, private_file};

/// How long the server may take to start on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(60);

/// A server of one bucket, in a process that ends with this value.
struct SeaweedFs {
    folder: tempfile::TempDir,
    ports: Ports,
    process: Child,
}

#[derive(Clone, Copy)]
struct Ports {
    s3: u16,
    filer: u16,
    others: [u16; 6],
}

impl SeaweedFs {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = r#"{"identities": [{
            "name": "test",
            "credentials": [{"accessKey": "testkey", "secretKey": "testsecret"}],
            "actions": ["Admin", "Read", "Write", "List"]
        }]}"#;
        std::fs::write(folder.path().join("s3.json"), configuration).unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let credentials = "access_key_id = testkey\nsecret_access_key = testsecret\n";
        private_file(folder.path().join("credentials"), credentials);
        let [s3, filer, others @ ..] = free_ports::<8>();
        let ports = Ports { s3, filer, others };
        let process = spawn(folder.path(), ports);
        let mut server = Self { folder, ports, process };
        server.await_bucket();
        server
    }

    /// Waits until the server runs, and creates its bucket.
    fn await_bucket(&mut self) {
        let Ports { s3, filer, .. } = self.ports;
        self.await_status(filer, "POST", &format!("/buckets/{BUCKET}/"), 201);
        // It refuses requests without a signature once it knows the keys.
        self.await_status(s3, "GET", "/", 403);
    }

    fn await_status(&mut self, port: u16, method: &str, path: &str, expected: u16) {
        let until = Instant::now() + START_WITHIN;
        loop {
            let found = status(port, method, path);
            if found == Some(expected) {
                return;
            }
            let ended = self.process.try_wait().unwrap();
            if ended.is_some() || Instant::now() > until {
                let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
                let lines: Vec<_> = log.lines().rev().take(20).collect();
                panic!("SeaweedFS does not start: {ended:?} {found:?} {lines:#?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn kill(&mut self) {
        // Fails if the process has ended.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }

    fn open(&self) -> S3Objects {
        let rest = format!(
            "{BUCKET}/prefix?endpoint=http://127.0.0.1:{}&plain&credentials={}",
            self.ports.s3,
            self.folder.path().join("credentials").display()
        );
        let location = CloudLocation::parse(CloudService::S3, rest.as_bytes()).unwrap();
        S3Objects::open(&location, &S3Options::default()).unwrap()
    }
}

impl Drop for SeaweedFs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The sockets that it made outside of its folder.
        let Ports { s3, filer, others: [s3_grpc, filer_grpc, _, master_grpc, _, volume_grpc] } =
            self.ports;
        for (part, port) in [
            ("s3", s3),
            ("filer", filer),
            ("s3-grpc", s3_grpc),
            ("filer-grpc", filer_grpc),
            ("master-grpc", master_grpc),
            ("volume-grpc", volume_grpc),
        ] {
            let _ = std::fs::remove_file(format!("/tmp/seaweedfs-{part}-{port}.sock"));
        }
    }
}

fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("target/tools/seaweedfs/bin/weed");
    assert!(program.exists(), "{} is missing; run `make seaweedfs`", program.display());
    program
}

fn spawn(folder: &Path, Ports { s3, filer, others }: Ports) -> Child {
    let [s3_grpc, filer_grpc, master, master_grpc, volume, volume_grpc] = others;
    let log = File::options().append(true).create(true).open(folder.join("log")).unwrap();
    Command::new(program())
        .args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"])
        // It would report its use to its makers.
        .arg("-master.telemetry=false")
        // After a restart it elects itself only after this time.
        .arg("-master.electionTimeout=1s")
        .arg(format!("-master.port={master}"))
        .arg(format!("-master.port.grpc={master_grpc}"))
        .args(["-master.volumeSizeLimitMB=64", "-volume.max=30", "-dir=data"])
        .arg(format!("-volume.port={volume}"))
        .arg(format!("-volume.port.grpc={volume_grpc}"))
        .arg(format!("-filer.port={filer}"))
        .arg(format!("-filer.port.grpc={filer_grpc}"))
        .arg(format!("-s3.port={s3}"))
        .arg(format!("-s3.port.grpc={s3_grpc}"))
        .args(["-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.config=s3.json"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Ports that were free, for a server that cannot choose free ones itself.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// The status that a server answers with; `None` if it does not answer.
fn status(port: u16, method: &str, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.take(16).read_to_end(&mut answer).ok()?;
    str::from_utf8(&answer).ok()?.split(' ').nth(1)?.parse().ok()
}

#[test]
fn seaweedfs_keeps_the_contract_and_gets_survive_a_kill() {
    let mut server = SeaweedFs::start();
    // Its creations wait for a lock, and look only once a second whether it is free.
    contract::check_with_races(|| server.open(), 1);

    let mut objects = server.open();
    let names: Vec<_> = (0..40).map(|number| ObjectName::Tail { session: 1, number }).collect();
    let contents = |number: usize| Bytes::from(vec![number as u8; 20_566]);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(contract::create(&mut objects, *name, &[&contents(number)]), Answer::Created);
    }
    let mut tickets: Vec<_> =
        names[..20].iter().map(|name| objects.begin_get(*name, 0..20_566)).collect();
    server.kill();
    tickets.extend(names[20..].iter().map(|name| objects.begin_get(*name, 0..20_566)));
    server.process = spawn(server.folder.path(), server.ports);
    for (number, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(objects.wait(ticket).unwrap(), Answer::Bytes(contents(number)), "{number}");
    }
    assert!(objects.counts().totals().retries > 0);
    assert_eq!(contract::create(&mut objects, names[0], &[b"other"]), Answer::Exists);
}
