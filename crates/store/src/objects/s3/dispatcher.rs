//! Sends requests, several at a time, and repeats those that may be repeated.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{self, Either};
use object_store::PutPayload;
use object_store::path::Path;
use oblivio_core::{StoreError, StoreErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::S3Options;
use super::answers::Reply;
use super::backoff::Backoff;
use super::bucket::Bucket;
use super::failure::{CreationVerdict, Failure};
use super::hedging::Hedging;
use crate::objects::request_counts::RequestCounts;
use crate::objects::{Answer, Listed, ObjectName, Prefix};

/// Maximum number of pages in a row without an object of the store.
const FOREIGN_PAGES_MAX: usize = 1000;

/// A request of the caller.
pub(super) enum Request {
    Get { name: ObjectName, range: Range<u64> },
    Create { name: ObjectName, parts: Vec<Bytes> },
    List { prefix: Prefix, after: Option<ObjectName> },
    Delete(Vec<ObjectName>),
}

pub(super) struct Dispatcher {
    bucket: Bucket,
    /// Requests that may still be sent at the same time.
    permits: Arc<Semaphore>,
    /// `None` if slow gets are not sent a second time.
    hedging: Option<Hedging>,
    counts: RequestCounts,
    retry_for: Duration,
    answer_within: Duration,
}

impl Dispatcher {
    pub(super) fn new(bucket: Bucket, options: &S3Options, counts: RequestCounts) -> Self {
        let parallel = options.parallel.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            bucket,
            permits: Arc::new(Semaphore::new(parallel)),
            hedging: options.hedges.then(Hedging::default),
            counts,
            retry_for: options.retry_for,
            answer_within: options.answer_within,
        }
    }

    /// Carries out a request.
    pub(super) async fn carry_out(self: Arc<Self>, request: Request) -> Result<Reply, StoreError> {
        match request {
            Request::Get { name, range } => self.get(name, range).await.map(Reply::Answer),
            Request::Create { name, parts } => self.create(name, parts).await.map(Reply::Answer),
            Request::List { prefix, after } => self.list(prefix, after).await.map(Reply::Page),
            Request::Delete(names) => self.delete(&names).await.map(|()| Reply::Deleted),
        }
    }

    async fn get(
        self: &Arc<Self>,
        name: ObjectName,
        range: Range<u64>,
    ) -> Result<Answer, StoreError> {
        let key = self.bucket.key(name);
        // HTTP has no empty ranges, but the caller wants to know whether the object exists.
        let wanted = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let range = range.start..range.end.max(range.start.saturating_add(1));
        let attempt = || async {
            match self.hedged_get(&key, range.clone()).await {
                Ok(bytes) => Ok(Answer::Bytes(bytes.slice(..wanted.min(bytes.len())))),
                Err(failure) if failure.is_absent() => Ok(Answer::Absent),
                Err(failure) if failure.is_past_the_end() => Ok(Answer::Bytes(Bytes::new())),
                Err(failure) => Err(failure),
            }
        };
        self.repeat(attempt, || format!("read object {}", self.bucket.shown(name))).await
    }

    /// Creates an object. A request whose answer was lost is not sent again.
    async fn create(&self, name: ObjectName, parts: Vec<Bytes>) -> Result<Answer, StoreError> {
        let key = self.bucket.key(name);
        let contents: PutPayload = parts.into_iter().filter(|part| !part.is_empty()).collect();
        // A long body takes its time on a slow link.
        let limit = self.answer_within
            + Duration::from_secs(contents.content_length() as u64 / UPLOAD_BYTES_PER_SECOND_MIN);
        let act = || format!("create object {}", self.bucket.shown(name));
        let mut backoff = Backoff::new(self.retry_for);
        let mut may_renew = true;
        loop {
            let permit = self.permit().await;
            let created = within(limit, self.bucket.create(&key, contents.clone())).await;
            drop(permit);
            let Err(failure) = created else { return Ok(Answer::Created) };
            match failure.of_creation() {
                CreationVerdict::Exists => return Ok(Answer::Exists),
                CreationVerdict::Unknown => return Ok(Answer::Unknown),
                CreationVerdict::Refused if may_renew && self.renews(&failure) => may_renew = false,
                CreationVerdict::Refused => return Err(failure.store_error(&act())),
                CreationVerdict::TryAgain => match backoff.next_pause() {
                    Some(pause) => sleep(pause).await,
                    None => return Err(failure.store_error(&act())),
                },
            }
            self.counts.add_retry();
        }
    }

    /// Lists objects of the store: one page, which is empty only at the end of the listing.
    async fn list(
        &self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError> {
        let shown = || self.bucket.shown_prefix(prefix);
        let mut token = None;
        for _ in 0..FOREIGN_PAGES_MAX {
            let attempt = || async {
                let _permit = self.permit().await;
                self.within(self.bucket.page(prefix, after, token.clone())).await
            };
            let page = self.repeat(attempt, || format!("list objects {}…", shown())).await?;
            let named = page.objects.iter().filter_map(|object| {
                let name = self.bucket.name(&object.location)?;
                let is_wanted = prefix.contains(name) && after.is_none_or(|after| name > after);
                is_wanted.then_some(Listed { name, bytes: object.size })
            });
            let listed: Vec<_> = named.collect();
            if !listed.is_sorted_by(|one, next| one.name < next.name) {
                let message = format!(
                    "the service does not list objects {}… in the order of their names; use \
                     another service, or at Amazon a general purpose bucket",
                    shown()
                );
                return Err(StoreError::new(StoreErrorKind::Refused, message));
            }
            if !listed.is_empty() || page.token.is_none() {
                return Ok(listed);
            }
            token = page.token;
        }
        let message = format!(
            "too many other objects have names that start with {}; use another prefix",
            shown()
        );
        Err(StoreError::new(StoreErrorKind::Refused, message))
    }

    async fn delete(&self, names: &[ObjectName]) -> Result<(), StoreError> {
        let batches = names.chunks(self.bucket.deletions_max()).map(|batch| async move {
            if self.delete_batch(batch).await? {
                return Ok(());
            }
            let singles = batch.chunks(1).map(|name| self.delete_batch(name));
            future::try_join_all(singles).await.map(drop)
        });
        future::try_join_all(batches).await.map(drop)
    }

    /// Deletes objects with one request. Returns whether the service knows the request.
    async fn delete_batch(&self, names: &[ObjectName]) -> Result<bool, StoreError> {
        let keys: Vec<_> = names.iter().map(|name| self.bucket.key(*name)).collect();
        let attempt = || async {
            let _permit = self.permit().await;
            self.within(self.bucket.delete(keys.clone())).await
        };
        let act = || match names {
            [name] => format!("delete object {}", self.bucket.shown(*name)),
            _ => {
                format!("delete {} objects {}…", names.len(), self.bucket.shown_prefix(Prefix::All))
            }
        };
        self.repeat(attempt, act).await
    }

    /// Reads a range, with a second request if the first one is slow.
    async fn hedged_get(self: &Arc<Self>, key: &Path, range: Range<u64>) -> Result<Bytes, Failure> {
        let permit = self.permit().await;
        let started = Instant::now();
        let first = self.single_get(key, &range, permit);
        let Some(hedging) = &self.hedging else { return first.await };
        let answer = match hedging.patience() {
            None => first.await,
            Some(patience) => match future::select(first, Box::pin(sleep(patience))).await {
                Either::Left((answer, _)) => answer,
                Either::Right((_, first)) => self.second_get(key, &range, hedging, first).await,
            },
        };
        if answer.is_ok() {
            hedging.record(started.elapsed());
        }
        answer
    }

    /// Sends a get again, and returns the first answer.
    async fn second_get(
        self: &Arc<Self>,
        key: &Path,
        range: &Range<u64>,
        hedging: &Hedging,
        first: SingleGet,
    ) -> Result<Bytes, Failure> {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return first.await;
        };
        if !hedging.spend() {
            drop(permit);
            return first.await;
        }
        self.counts.add_hedge();
        let second = self.single_get(key, range, Some(permit));
        let (answer, other) = future::select(first, second).await.factor_first();
        match answer {
            Err(failure) if failure.is_transient() => other.await,
            answer => {
                // A connection with an answer under way could not be used again if it were
                // dropped.
                tokio::spawn(other);
                answer
            }
        }
    }

    fn single_get(
        self: &Arc<Self>,
        key: &Path,
        range: &Range<u64>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> SingleGet {
        let (dispatcher, key, range) = (Arc::clone(self), key.clone(), range.clone());
        Box::pin(async move {
            let _permit = permit;
            dispatcher.within(dispatcher.bucket.get(&key, range)).await
        })
    }

    /// Repeats a request until it succeeds, fails for good, or the time limit is over. `act` says
    /// what fails, as the end of the sentence "cannot …".
    async fn repeat<T, Attempt: Future<Output = Result<T, Failure>>>(
        &self,
        mut attempt: impl FnMut() -> Attempt,
        act: impl Fn() -> String,
    ) -> Result<T, StoreError> {
        let mut backoff = Backoff::new(self.retry_for);
        let mut may_renew = true;
        loop {
            let failure = match attempt().await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if may_renew && self.renews(&failure) {
                may_renew = false;
            } else {
                let pause = if failure.is_transient() { backoff.next_pause() } else { None };
                let pause = pause.ok_or_else(|| failure.store_error(&act()))?;
                sleep(pause).await;
            }
            self.counts.add_retry();
        }
    }

    /// Reads the credentials again, if the failure is about them. Returns whether they are others
    /// now.
    fn renews(&self, failure: &Failure) -> bool {
        failure.is_about_credentials() && self.bucket.renew_credentials()
    }

    /// Waits until another request may be sent.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Waits for an answer within the time limit of one attempt.
    async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        within(self.answer_within, answer).await
    }
}

/// Waits for an answer within a time limit.
async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(limit, answer).await.unwrap_or_else(|_| {
        Err(Failure::Lost(format!("the service did not answer within {limit:.0?}")))
    })
}

/// The slowest upload that the time limit of a creation allows for.
const UPLOAD_BYTES_PER_SECOND_MIN: u64 = 16 << 10;

type SingleGet = Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send>>;
