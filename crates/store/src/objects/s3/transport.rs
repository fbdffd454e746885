//! HTTP for `object_store`: TCP, TLS, counters, and checks of everything that the service sends.
//!
//! An answer that is not a success becomes an error with a [`Failure`], so `object_store` neither
//! interprets nor retries it. Answers are bounded before they are collected, and numbers and lists
//! that `object_store` would trust are checked here.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, RANGE};
use hyper::{Method, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::failure::{Failure, Refusal};
use super::xml;
use crate::objects::request_counts::{RequestCounts, RequestKind};

/// Maximum length of an answer that is not an object, such as a page of a listing: 1,000 names of
/// 1,024 bytes, each with its metadata.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Maximum length of an error that is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Time limit for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long an unused connection is kept. Services close theirs after 20 seconds or more; a
/// creation on a connection that the service is closing would have an unknown outcome.
const IDLE_FOR: Duration = Duration::from_secs(10);

/// Connections to one service. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
    counts: RequestCounts,
}

impl Transport {
    /// Prepares connections with this configuration of TLS. `is_plain` permits connections without
    /// TLS.
    pub(super) fn new(tls: ClientConfig, is_plain: bool, counts: RequestCounts) -> Self {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        tcp.set_keepalive(Some(Duration::from_secs(30)));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let builder = if is_plain { builder.https_or_http() } else { builder.https_only() };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_FOR)
            .build(builder.enable_http1().wrap_connector(tcp));
        Self { client, counts }
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let kind = kind_of(&request);
        let deletes_many = request.method() == Method::POST && has_query(&request, "delete");
        let range = requested_range(request.headers());
        if let Some(kind) = kind {
            self.counts.add_request(kind, request.body().content_length() as u64);
        }
        let response = self.client.request(request).await;
        let (parts, body) =
            response.map_err(|error| http_error(connection_failure(error)))?.into_parts();
        if !parts.status.is_success() {
            let refusal = self.refusal(parts.status, &parts.headers, body).await;
            return Err(http_error(Failure::Refused(refusal)));
        }
        let bytes_max = match range {
            Some(range) => {
                checked_range(parts.status, &parts.headers, range).map_err(http_error)?
            }
            None => ANSWER_BYTES_MAX,
        };
        let mut body = HttpResponseBody::new(BoundedBody {
            inner: body,
            left: bytes_max,
            counts: self.counts.clone(),
        });
        if deletes_many {
            let answer = body.bytes().await?;
            xml::check_deletions(&answer).map_err(|it| http_error(Failure::Refused(it)))?;
            body = Bytes::from_static(xml::EMPTY_DELETION).into();
        }
        Ok(HttpResponse::from_parts(parts, body))
    }
}

impl Transport {
    /// Reads an error of the service.
    async fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: Incoming) -> Refusal {
        let body = Limited::new(body, ERROR_BYTES_MAX).collect().await;
        // A cut explanation does not change the status.
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        self.counts.add_bytes_down(body.len() as u64);
        let mut refusal = xml::refusal(status.as_u16(), &String::from_utf8_lossy(&body));
        if let Some(code) = headers.get("x-ms-error-code").and_then(|code| code.to_str().ok()) {
            code.clone_into(&mut refusal.code);
        }
        refusal
    }
}

/// The kind under which a request is billed; `None` for requests of credentials.
fn kind_of(request: &HttpRequest) -> Option<RequestKind> {
    let has = |part| has_query(request, part);
    match *request.method() {
        Method::GET if has("list-type=2") || has("comp=list") => Some(RequestKind::List),
        Method::GET if request.headers().contains_key(RANGE) => Some(RequestKind::Get),
        Method::PUT => Some(RequestKind::Put),
        Method::DELETE => Some(RequestKind::Delete),
        Method::POST if has("delete") || has("comp=batch") => Some(RequestKind::Delete),
        _ => None,
    }
}

/// Whether `part` is among the parameters of a request.
fn has_query(request: &HttpRequest, part: &str) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|it| it == part))
}

/// The first and the last byte that a request asks for.
fn requested_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    byte_range(headers.get(RANGE)?.to_str().ok()?.strip_prefix("bytes=")?)
}

fn byte_range(written: &str) -> Option<(u64, u64)> {
    let (first, last) = written.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Checks the range of an answer to a request for the bytes `first` to `last`. Returns its length.
fn checked_range(
    status: StatusCode,
    headers: &HeaderMap,
    (first, last): (u64, u64),
) -> Result<u64, Failure> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let length = header(CONTENT_LENGTH).and_then(|length| length.trim().parse::<u64>().ok());
    if length == Some(0) {
        // Some services answer so if the object ends before the range.
        let (code, message) = (String::new(), "the object ends before".to_owned());
        return Err(Failure::Refused(Refusal { status: 416, code, message }));
    }
    if status != StatusCode::PARTIAL_CONTENT {
        return Err(Failure::Invalid("it does not serve ranges of objects".to_owned()));
    }
    let invalid = || Failure::Invalid("it sent another range than was requested".to_owned());
    let sent = header(CONTENT_RANGE).and_then(|range| {
        let (range, size) = range.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (sent_first, sent_last) = byte_range(range)?;
        let size: u64 = size.parse().ok()?;
        let is_end = sent_last == last || sent_last.checked_add(1) == Some(size);
        let is_valid = sent_first == first
            && (first..=last).contains(&sent_last)
            && sent_last < size
            && is_end;
        is_valid.then(|| sent_last - first + 1)
    });
    sent.filter(|&sent| length.is_none_or(|length| length == sent)).ok_or_else(invalid)
}

/// The body of an answer, cut off by an error if it is longer than it may be.
struct BoundedBody {
    inner: Incoming,
    left: u64,
    counts: RequestCounts,
}

impl Body for BoundedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            return Poll::Pending;
        };
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(|error| {
                http_error(Failure::Lost(format!("the connection was lost ({})", cause_of(&error))))
            })?;
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            self.counts.add_bytes_down(bytes);
            self.left = self.left.checked_sub(bytes).ok_or_else(|| {
                http_error(Failure::Invalid("it sent more bytes than were requested".to_owned()))
            })?;
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // `object_store` reserves memory for the lower bound, which the service chooses.
        let mut hint = SizeHint::new();
        hint.set_lower(self.inner.size_hint().lower().min(self.left));
        hint
    }
}

fn connection_failure(error: hyper_util::client::legacy::Error) -> Failure {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
            return Failure::Untrusted(format!(
                "the certificate of the service is not trusted ({why:?})"
            ));
        }
        // An I/O error passes over the error that it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = wrapped.map(|it| it as &(dyn StdError + 'static)).or_else(|| error.source());
    }
    let why = cause_of(&error);
    if error.is_connect() {
        Failure::NotSent(format!("cannot connect to the service ({why})"))
    } else {
        Failure::Lost(format!("the connection was lost ({why})"))
    }
}

/// The message of the innermost cause of an error.
fn cause_of(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

fn http_error(failure: Failure) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, failure)
}

/// The certificates in a PEM text.
///
/// # Errors
/// A message that says what is wrong with the text.
pub(super) fn roots_from_pem(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| "it is not in PEM form".to_owned())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it contains no certificate".to_owned()) } else { Ok(roots) }
}

/// The certificates that this machine trusts; empty if there are none.
pub(super) fn roots_of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The configuration of TLS that trusts services with certificates of `roots`.
pub(super) fn tls_config(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .expect("ring supports the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(status: u16, range: &str, length: &str, asked: (u64, u64)) -> Result<u64, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_RANGE, range.parse().unwrap());
        headers.insert(CONTENT_LENGTH, length.parse().unwrap());
        checked_range(StatusCode::from_u16(status).unwrap(), &headers, asked)
    }

    #[test]
    fn only_the_requested_range_is_accepted() {
        assert_eq!(range_of(206, "bytes 3-6/10", "4", (3, 6)), Ok(4));
        assert_eq!(range_of(206, "bytes 3-9/10", "7", (3, 20)), Ok(7));
        for (status, range) in [(200, ""), (206, "bytes 3-2/3")] {
            assert!(range_of(status, range, "0", (3, 6)).unwrap_err().is_past_the_end());
        }
        let max = u64::MAX;
        for (range, length) in [
            ("bytes 2-6/10", "5"),
            ("bytes 3-5/10", "3"),
            ("bytes 3-7/10", "5"),
            ("bytes 3-6/6", "4"),
            ("bytes 3-6/10", "5"),
            ("bytes 6-3/10", "4"),
            ("bytes 3-6/*", "4"),
            (&format!("bytes 3-{max}/{max}"), "4"),
            (&format!("bytes {max}-{max}/0"), "1"),
            ("3-6/10", "4"),
        ] {
            assert!(matches!(range_of(206, range, length, (3, 6)), Err(Failure::Invalid(_))));
        }
        assert!(range_of(200, "bytes 3-6/10", "10", (3, 6)).is_err());
    }
}
