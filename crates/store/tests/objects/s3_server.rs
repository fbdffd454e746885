//! A small S3 server in this process, which simulates faults.
//!
//! It has one bucket in memory, serves paths of the form `/bucket/key`, and checks the hashes of
//! payloads but no signatures. A plan chooses what it does with each request.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use oblivio_store::objects::{S3Objects, S3Options};
use oblivio_store::{CloudLocation, CloudService};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

pub(crate) const BUCKET: &str = "bucket";

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Put,
    List,
    Delete,
    DeleteMany,
}

/// A request as the server received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) verb: Verb,
    /// The key of the object, or the prefix of a listing.
    pub(crate) key: String,
    pub(crate) range: Option<Range<usize>>,
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Serve,
    /// Serves the request after a delay.
    Delay(Duration),
    /// Serves the request, and closes the connection instead of answering.
    LoseAnswer,
    /// Closes the connection at once.
    Close,
    /// Answers with this status and code, and does nothing.
    Refuse(u16, &'static str),
    /// Serves the request, but answers with this status and code.
    ServeAndRefuse(u16, &'static str),
    /// Reads this many bytes of the body, makes an object of `leaves` bytes, if any, and closes the
    /// connection.
    CutBody {
        read: usize,
        leaves: Option<usize>,
    },
    /// Closes the connection after this many bytes of the answer's body.
    CutAnswer(usize),
    /// Answers with this status, these headers and this body.
    Say(u16, &'static [(&'static str, &'static str)], Bytes),
    /// Never answers.
    Stall,
}

/// Chooses the action for each request, given its number.
type Plan = Box<dyn FnMut(usize, &Received) -> Action + Send>;

pub(crate) struct World {
    pub(crate) objects: BTreeMap<String, Bytes>,
    pub(crate) received: Vec<Received>,
    plan: Plan,
    /// The time between the check of a creation and its write. Other requests run in it, so
    /// several racing creations succeed.
    pub(crate) race: Option<Duration>,
    /// The only accepted access key, and the code of the refusal of others.
    pub(crate) key: Option<(String, &'static str)>,
    pub(crate) page: usize,
    pub(crate) deletes_many: bool,
    pub(crate) connections: usize,
}

pub(crate) struct S3Server {
    pub(crate) address: SocketAddr,
    world: Arc<Mutex<World>>,
    /// Ends the server when it is dropped.
    _stop: oneshot::Sender<()>,
    thread: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

type Answered = Result<Response<BoxBody<Bytes, io::Error>>, io::Error>;

impl S3Server {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts the server, with TLS if there is an acceptor.
    pub(crate) fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let world = Arc::new(Mutex::new(World {
            objects: BTreeMap::new(),
            received: Vec::new(),
            plan: Box::new(|_, _| Action::Serve),
            race: None,
            key: None,
            page: 1000,
            deletes_many: true,
            connections: 0,
        }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&world);
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, tls, served) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name("s3-server".into()).spawn(serve).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let server = Self { address, world, _stop: stop, thread: Some(thread), folder };
        server.write_key("testkey");
        server
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Sets the plan of actions, and begins to count requests from 0 again.
    pub(crate) fn plan(&self, plan: impl FnMut(usize, &Received) -> Action + Send + 'static) {
        let mut world = self.world();
        world.plan = Box::new(plan);
        world.received.clear();
    }

    /// Does `action` with the first `count` requests.
    pub(crate) fn first(&self, count: usize, action: Action) {
        self.plan(move |number, _| if number < count { action.clone() } else { Action::Serve });
    }

    /// Writes the file with credentials.
    pub(crate) fn write_key(&self, key: &str) {
        let text = format!("access_key_id = {key}\nsecret_access_key = testsecret\n");
        private_file(self.credentials(), &text);
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.folder.path().join("credentials")
    }

    pub(crate) fn location(&self) -> CloudLocation {
        let (address, credentials) = (self.address, self.credentials());
        let rest = format!(
            "{BUCKET}/some/prefix?endpoint=http://{address}&plain&credentials={}",
            credentials.display()
        );
        CloudLocation::parse(CloudService::S3, rest.as_bytes()).unwrap()
    }

    /// Opens a client with short time limits.
    pub(crate) fn open(&self) -> S3Objects {
        self.open_with(|_| {})
    }

    pub(crate) fn open_with(&self, change: impl FnOnce(&mut S3Options)) -> S3Objects {
        let mut options = S3Options::default();
        options.retry_for = Duration::from_secs(5);
        options.answer_within = Duration::from_secs(2);
        change(&mut options);
        S3Objects::open(&self.location(), &options).unwrap()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let (stop, _) = oneshot::channel();
        self._stop = stop;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes a file that only its owner can read.
pub(crate) fn private_file(path: PathBuf, text: &str) {
    use std::io::Write;
    let mut file =
        oblivio_wire::private::file_options().write(true).create(true).truncate(true).open(path);
    file.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, world: Arc<Mutex<World>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        world.lock().unwrap().connections += 1;
        let (tls, world) = (tls.clone(), Arc::clone(&world));
        tokio::spawn(async move {
            match tls {
                None => serve(stream, world).await,
                // A client that does not trust the server ends the handshake.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, world).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, world: Arc<Mutex<World>>) {
    let service = service_fn(move |request| answer(request, Arc::clone(&world)));
    // Fails if a plan closes the connection.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn closed() -> io::Error {
    io::Error::other("the plan closes the connection")
}

async fn answer(request: Request<Incoming>, world: Arc<Mutex<World>>) -> Answered {
    let (parts, mut body) = request.into_parts();
    let received = received(&parts);
    let action = {
        let mut world = world.lock().unwrap();
        let number = world.received.len();
        world.received.push(received.clone());
        (world.plan)(number, &received)
    };
    match action {
        Action::Close => return Err(closed()),
        Action::Stall => std::future::pending().await,
        Action::Delay(delay) => tokio::time::sleep(delay).await,
        Action::Refuse(status, code) => {
            let _ = body.collect().await;
            return refusal(status, code);
        }
        Action::Say(status, headers, said) => {
            let _ = body.collect().await;
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            return Ok(response.body(whole(said)).unwrap());
        }
        Action::CutBody { read, leaves } => {
            let mut begun = BytesMut::new();
            while begun.len() < read {
                let frame = body.frame().await.ok_or_else(closed)?.map_err(io::Error::other)?;
                begun.extend_from_slice(frame.data_ref().unwrap());
            }
            if let Some(leaves) = leaves {
                let contents = begun.freeze().slice(..leaves);
                world.lock().unwrap().objects.insert(received.key, contents);
            }
            return Err(closed());
        }
        Action::Serve | Action::LoseAnswer | Action::ServeAndRefuse(..) | Action::CutAnswer(_) => {}
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let done = carry_out(&parts, received, body, world).await;
    match action {
        Action::LoseAnswer => Err(closed()),
        Action::ServeAndRefuse(status, code) => refusal(status, code),
        Action::CutAnswer(bytes) => {
            let (mut parts, body) = done?.into_parts();
            let whole = body.collect().await?.to_bytes();
            parts.headers.insert("content-length", whole.len().into());
            let begun = whole.slice(..bytes.min(whole.len()));
            let cut = async {
                // Else the server would not send what it has.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(closed())
            };
            let frames = stream::iter([Ok(Frame::data(begun))]).chain(stream::once(cut));
            Ok(Response::from_parts(parts, BodyExt::boxed(StreamBody::new(frames))))
        }
        _ => done,
    }
}

fn received(parts: &hyper::http::request::Parts) -> Received {
    let path = percent_decode_str(parts.uri.path()).decode_utf8().unwrap();
    let key = path.strip_prefix('/').unwrap().strip_prefix(BUCKET).unwrap();
    let key = key.strip_prefix('/').unwrap_or(key).to_owned();
    let range = parts.headers.get("range").map(|range| {
        let range = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
        let (first, last) = range.split_once('-').unwrap();
        first.parse().unwrap()..last.parse::<usize>().unwrap() + 1
    });
    let verb = match parts.method {
        Method::GET if key.is_empty() => Verb::List,
        Method::GET => Verb::Get,
        Method::PUT => Verb::Put,
        Method::DELETE => Verb::Delete,
        Method::POST => Verb::DeleteMany,
        _ => panic!("unexpected request: {parts:?}"),
    };
    let key = if verb == Verb::List { query(parts, "prefix").unwrap_or_default() } else { key };
    Received { verb, key, range }
}

fn query(parts: &hyper::http::request::Parts, name: &str) -> Option<String> {
    let mut fields = parts.uri.query()?.split('&').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(found, _)| *found == name)?;
    Some(percent_decode_str(&value.replace('+', " ")).decode_utf8().unwrap().into_owned())
}

async fn carry_out(
    parts: &hyper::http::request::Parts,
    Received { verb, key, range }: Received,
    body: Bytes,
    world: Arc<Mutex<World>>,
) -> Answered {
    let header = |name| parts.headers.get(name).map(|value| value.to_str().unwrap());
    if let Some(signature) = header("authorization").filter(|it| it.starts_with("AWS4")) {
        let refused = world.lock().unwrap().key.clone();
        if let Some((key, code)) = refused
            && !signature.contains(&format!("Credential={key}/"))
        {
            return refusal(403, code);
        }
        let hash: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        let signed = header("x-amz-content-sha256").unwrap();
        if signed != hash {
            return refusal(400, "XAmzContentSHA256Mismatch");
        }
    }
    match verb {
        Verb::Get => get(world.lock().unwrap().objects.get(&key), range),
        Verb::Put => {
            assert!(
                header("if-none-match") == Some("*")
                    || header("x-goog-if-generation-match") == Some("0")
            );
            let (exists, race) = {
                let world = world.lock().unwrap();
                (world.objects.contains_key(&key), world.race)
            };
            if exists {
                return refusal(412, "PreconditionFailed");
            }
            if let Some(race) = race {
                tokio::time::sleep(race).await;
            }
            world.lock().unwrap().objects.insert(key, body);
            Ok(Response::builder().header("etag", "\"1\"").body(whole(Bytes::new())).unwrap())
        }
        Verb::List => {
            let world = world.lock().unwrap();
            Ok(Response::new(whole(list(&world, parts, &key))))
        }
        Verb::Delete => {
            world.lock().unwrap().objects.remove(&key);
            Ok(Response::builder().status(204).body(whole(Bytes::new())).unwrap())
        }
        Verb::DeleteMany => {
            let mut world = world.lock().unwrap();
            if !world.deletes_many {
                return refusal(501, "NotImplemented");
            }
            let body = String::from_utf8(body.into()).unwrap();
            let keys: Vec<_> = body.split("<Key>").skip(1).collect();
            assert!(keys.len() <= 1000);
            for key in keys {
                world.objects.remove(key.split('<').next().unwrap());
            }
            let done = "<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>";
            Ok(Response::new(whole(done.into())))
        }
    }
}

fn get(object: Option<&Bytes>, range: Option<Range<usize>>) -> Answered {
    let Some(object) = object else { return refusal(404, "NoSuchKey") };
    let range = range.expect("the client requests ranges only");
    if range.start >= object.len() {
        return refusal(416, "InvalidRange");
    }
    let range = range.start..range.end.min(object.len());
    let (start, last, size) = (range.start, range.end - 1, object.len());
    Ok(Response::builder()
        .status(StatusCode::PARTIAL_CONTENT)
        .header("content-range", format!("bytes {start}-{last}/{size}"))
        .header("etag", "\"1\"")
        .header("last-modified", "Sat, 28 Nov 2026 00:00:00 GMT")
        .body(whole(object.slice(range)))
        .unwrap())
}

fn list(world: &World, parts: &hyper::http::request::Parts, prefix: &str) -> Bytes {
    let after = query(parts, "continuation-token").or_else(|| query(parts, "start-after"));
    let after = after.filter(|after| after.as_str() >= prefix);
    let from = after.map_or(std::ops::Bound::Included(prefix.to_owned()), Excluded);
    let all = world.objects.range((from, Unbounded));
    let mut keys = all.take_while(|(key, _)| key.starts_with(prefix));
    let mut page = String::from("<ListBucketResult>");
    let mut last = None;
    for (key, object) in keys.by_ref().take(world.page) {
        page += &format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-28T00:00:00.000Z</LastModified>\
             <Size>{}</Size></Contents>",
            object.len()
        );
        last = Some(key);
    }
    if let Some(last) = last.filter(|_| keys.next().is_some()) {
        page += "<IsTruncated>true</IsTruncated>";
        page += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
    }
    (page + "</ListBucketResult>").into()
}

fn refusal(status: u16, code: &str) -> Answered {
    let body = format!("<Error><Code>{code}</Code><Message>as planned</Message></Error>");
    Ok(Response::builder().status(status).body(whole(body.into())).unwrap())
}

fn whole(bytes: Bytes) -> BoxBody<Bytes, io::Error> {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}
