//! Objects in Amazon S3 and compatible services, in Google Cloud Storage and in Azure.
//!
//! One thread sends all requests. The caller's thread hands them over and blocks only in `wait`.
//! The crate `object_store` knows the protocols; it sends through connections of this engine and
//! repeats nothing.
//!
//! A creation is one request with `If-None-Match: *` and a signed payload. If its answer is lost,
//! it is [`Unknown`](Answer::Unknown) and not repeated. It is repeated only if the service answers
//! that it did nothing, or if there was no connection.
//!
//! | module | contents |
//! |---|---|
//! | `dispatcher` | requests in flight, and their repetition |
//! | `bucket` | single requests to a bucket |
//! | `transport` | HTTP and TLS, and checks of all that the service sends |
//! | `xml` | the parts of answers that this engine reads itself |
//! | `failure` | why a request failed, and what follows |
//! | `backoff` | pauses between attempts |
//! | `hedging` | second attempts at slow reads |
//! | `answers` | the table of answers |
//! | `credentials` | the keys of a service |

mod answers;
mod backoff;
mod bucket;
mod credentials;
mod dispatcher;
mod failure;
mod hedging;
mod transport;
mod xml;

use std::fs;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::{StoreError, StoreErrorKind};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub use credentials::{AzureKey, Credentials};

use super::request_counts::RequestCounts;
use super::{Answer, Listed, ObjectName, Objects, Prefix, Synced, Ticket};
use crate::cloud_location::CloudLocation;
use crate::error::{OpenError, OpenErrorKind};
use crate::opener::RETRY_FOR;
use answers::{Answers, Pending, Reply};
use bucket::Bucket;
use dispatcher::{Dispatcher, Request};
use rustls::RootCertStore;
use transport::{Transport, roots_from_pem, roots_of_system, tls_config};

/// Options of a connection to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct S3Options {
    /// Maximum number of requests in flight.
    pub parallel: usize,
    /// Time limit for repeating a request, after its first failure.
    pub retry_for: Duration,
    /// Time limit for one attempt. A get is repeated after it; the outcome of a creation is then
    /// [`Unknown`](Answer::Unknown).
    pub answer_within: Duration,
    /// Whether gets that take longer than 95 % of the latest thousand are sent a second time. At
    /// most a tenth of all gets is.
    pub hedges: bool,
}

impl Default for S3Options {
    fn default() -> Self {
        Self {
            parallel: 128,
            retry_for: RETRY_FOR,
            answer_within: Duration::from_secs(30),
            hedges: true,
        }
    }
}

/// Objects in a bucket.
///
/// # Limits
/// - The service must keep the contract of [`Objects`] for creations. Some compatible services do
///   not: several of racing creations succeed.
/// - Some services leave an object of 0 bytes if the connection is lost after the head of a
///   creation. So [`Answer::Exists`] does not say that the object is whole.
/// - Proxies that environment variables name are not used.
pub struct S3Objects {
    /// `None` once this is dropped.
    requests: Option<UnboundedSender<(Request, Pending)>>,
    answers: Arc<Answers>,
    counts: RequestCounts,
    thread: Option<JoinHandle<()>>,
}

impl S3Objects {
    /// Prepares connections to a bucket. Sends no request, so a missing bucket or a refused key is
    /// an error of the first request.
    ///
    /// # Errors
    /// If the credentials or the certificates cannot be read.
    pub fn open(location: &CloudLocation, options: &S3Options) -> Result<Self, OpenError> {
        let credentials = Credentials::read(location.service(), location.credentials())?;
        Self::open_with(location, credentials, options)
    }

    /// As [`open`](Self::open), with credentials that were read before. Those of the location are
    /// read only if the service says that these have expired.
    ///
    /// # Errors
    /// If the certificates cannot be read.
    pub fn open_with(
        location: &CloudLocation,
        credentials: Credentials,
        options: &S3Options,
    ) -> Result<Self, OpenError> {
        let counts = RequestCounts::default();
        let tls = tls_config(roots(location)?);
        let transport = Transport::new(tls, location.is_plain(), counts.clone());
        let bucket = Bucket::new(location, credentials, transport)?;
        let dispatcher = Arc::new(Dispatcher::new(bucket, options, counts.clone()));
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| OpenError::io("start the thread that sends requests", cause))?;
        let (requests, received) = unbounded_channel();
        let thread = thread::Builder::new()
            .name("objects".to_owned())
            .spawn(move || {
                runtime.block_on(serve(dispatcher, received));
                // Do not wait for a name server.
                runtime.shutdown_background();
            })
            .map_err(|cause| OpenError::io("start the thread that sends requests", cause))?;
        let answers = Arc::new(Answers::default());
        Ok(Self { requests: Some(requests), answers, counts, thread: Some(thread) })
    }

    /// The counters of all requests that are sent.
    pub fn counts(&self) -> RequestCounts {
        self.counts.clone()
    }

    fn begin(&self, request: Request) -> Ticket {
        let (ticket, pending) = self.answers.add();
        if let Some(requests) = &self.requests {
            // If the thread has ended, the request fails when it is dropped here.
            let _ = requests.send((request, pending));
        }
        ticket
    }
}

/// Starts requests until the caller drops the engine.
async fn serve(dispatcher: Arc<Dispatcher>, mut received: UnboundedReceiver<(Request, Pending)>) {
    while let Some((request, pending)) = received.recv().await {
        let dispatcher = Arc::clone(&dispatcher);
        tokio::spawn(async move { pending.answer(dispatcher.carry_out(request).await) });
    }
}

/// The certificates that a service's certificate may be signed by.
fn roots(location: &CloudLocation) -> Result<RootCertStore, OpenError> {
    let Some(path) = location.ca() else {
        let roots = roots_of_system();
        if roots.is_empty() && !location.is_plain() {
            let message = "this machine has no certificates of authorities; install the package \
                           ca-certificates, or write &ca=FILE";
            return Err(OpenError::new(OpenErrorKind::NoCredential, message));
        }
        return Ok(roots);
    };
    let shown = path.display();
    let pem = fs::read(path)
        .map_err(|cause| OpenError::io(&format!("read the certificates {shown}"), cause))?;
    roots_from_pem(&pem).map_err(|why| {
        let message = format!("the file of certificates {shown} is invalid: {why}; check ca=");
        OpenError::new(OpenErrorKind::NoCredential, message)
    })
}

impl Objects for S3Objects {
    fn begin_get(&mut self, name: ObjectName, range: Range<u64>) -> Ticket {
        self.begin(Request::Get { name, range })
    }

    fn begin_create(&mut self, name: ObjectName, parts: Vec<Bytes>) -> Ticket {
        self.begin(Request::Create { name, parts })
    }

    fn wait(&mut self, ticket: Ticket) -> Result<Answer, StoreError> {
        match self.answers.wait(ticket)? {
            Reply::Answer(answer) => Ok(answer),
            reply => Err(wrong_kind(&reply)),
        }
    }

    fn forget(&mut self, ticket: Ticket) {
        self.answers.forget(ticket);
    }

    fn list(
        &mut self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError> {
        let ticket = self.begin(Request::List { prefix, after });
        match self.answers.wait(ticket)? {
            Reply::Page(page) => Ok(page),
            reply => Err(wrong_kind(&reply)),
        }
    }

    fn delete(&mut self, names: &[ObjectName]) -> Result<(), StoreError> {
        let ticket = self.begin(Request::Delete(names.to_vec()));
        self.answers.wait(ticket).map(drop)
    }

    /// Returns at once: a service makes an object durable before it answers.
    fn sync(&mut self) -> Result<Synced, StoreError> {
        Ok(Synced::Durable)
    }
}

fn wrong_kind(reply: &Reply) -> StoreError {
    StoreError::new(StoreErrorKind::Failed, format!("a request was answered by {reply:?}"))
}

/// Drops requests in flight.
impl Drop for S3Objects {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported, and its requests have failed.
            let _ = thread.join();
        }
    }
}
