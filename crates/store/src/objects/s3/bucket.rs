//! A bucket: single requests, without retries.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, PutMode, PutPayload, RetryConfig,
};

use super::credentials::{AzureKey, Credentials, RenewableCredentials, aws_credential};
use super::failure::Failure;
use super::transport::Transport;
use crate::cloud_location::CloudLocation;
use crate::error::{OpenError, OpenErrorKind};
use crate::objects::{ObjectName, Prefix};

/// The region for services other than Amazon's. Most of them ignore it.
const DEFAULT_REGION: &str = "us-east-1";

/// The client of a bucket.
pub(super) struct Bucket {
    clients: Clients,
    lacks_bulk_deletions: AtomicBool,
    /// What the keys of all objects start with.
    prefix: String,
    /// The bucket, for messages.
    place: String,
}

/// The clients of `object_store` for one bucket.
struct Clients {
    store: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    /// Deletes objects one by one, if the service turns out not to delete many at once; `None` if
    /// all services of this kind delete as `store` does.
    single_deletions: Option<Arc<dyn ObjectStore>>,
    /// Maximum number of objects that one request deletes.
    deletions_max: usize,
    credentials: Option<Arc<RenewableCredentials>>,
}

/// A page of a listing as the service sent it.
pub(super) struct Page {
    pub(super) objects: Vec<ObjectMeta>,
    /// Continues the listing; `None` at its end.
    pub(super) token: Option<String>,
}

impl Bucket {
    /// Prepares the client. Sends nothing.
    ///
    /// # Errors
    /// If the credentials have an invalid form.
    pub(super) fn new(
        location: &CloudLocation,
        credentials: Credentials,
        transport: Transport,
    ) -> Result<Self, OpenError> {
        let clients = match credentials {
            Credentials::S3 { access_key_id, secret_access_key, session_token } => {
                let token = session_token.as_deref();
                let current = aws_credential(&access_key_id, &secret_access_key, token);
                let source = location.credentials().clone();
                let credentials = Arc::new(RenewableCredentials::new(source, current));
                s3_clients(location, credentials, transport)
            }
            Credentials::Gcs(key) => gcs_client(location, &key, transport).map(|store| {
                let store = Arc::new(store);
                Clients {
                    pages: Arc::<GoogleCloudStorage>::clone(&store),
                    store,
                    single_deletions: None,
                    deletions_max: 1,
                    credentials: None,
                }
            }),
            Credentials::Azure { account_name, key } => {
                azure_client(location, account_name, key, transport).map(|store| {
                    let store = Arc::new(store);
                    Clients {
                        pages: Arc::<MicrosoftAzure>::clone(&store),
                        store,
                        single_deletions: None,
                        deletions_max: 256,
                        credentials: None,
                    }
                })
            }
        };
        // The cause may repeat parts of a key.
        let clients = clients.map_err(|_| {
            let message = "the credentials have an invalid form; check the file that \
                           credentials= names";
            OpenError::new(OpenErrorKind::NoCredential, message)
        })?;
        Ok(Self {
            clients,
            lacks_bulk_deletions: AtomicBool::new(false),
            prefix: location.prefix().to_owned(),
            place: format!("{}://{}", location.service().scheme(), location.bucket()),
        })
    }

    /// The URL of an object, for messages.
    pub(super) fn shown(&self, name: ObjectName) -> String {
        format!("{}/{}/{name}", self.place, self.prefix)
    }

    /// The URL of a prefix, for messages.
    pub(super) fn shown_prefix(&self, prefix: Prefix) -> String {
        format!("{}/{}/{prefix}", self.place, self.prefix)
    }

    /// The key of an object in the bucket.
    pub(super) fn key(&self, name: ObjectName) -> Path {
        Path::from(format!("{}/{name}", self.prefix))
    }

    /// The name of the object with this key; `None` for any other key.
    pub(super) fn name(&self, key: &Path) -> Option<ObjectName> {
        let name = key.as_ref().strip_prefix(&self.prefix)?.strip_prefix('/')?;
        ObjectName::parse(name)
    }

    /// Reads the credentials again. Returns whether they are others now.
    pub(super) fn renew_credentials(&self) -> bool {
        self.clients.credentials.as_ref().is_some_and(|credentials| credentials.renew())
    }

    /// Reads a range that is not empty, or the part of it before the end of the object.
    pub(super) async fn get(&self, key: &Path, range: Range<u64>) -> Result<Bytes, Failure> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let found = self.clients.store.get_opts(key, options).await;
        let found = found.map_err(|error| Failure::from_error(&error))?;
        let expected = found.range.end - found.range.start;
        let bytes = found.bytes().await.map_err(|error| Failure::from_error(&error))?;
        if bytes.len() as u64 != expected {
            return Err(Failure::Lost("the answer was cut off".to_owned()));
        }
        Ok(bytes)
    }

    /// Creates an object, if none of that name exists.
    pub(super) async fn create(&self, key: &Path, contents: PutPayload) -> Result<(), Failure> {
        let created = self.clients.store.put_opts(key, contents, PutMode::Create.into()).await;
        created.map(drop).map_err(|error| Failure::from_error(&error))
    }

    /// Lists one page, of objects after `after` or of those that follow the page before.
    pub(super) async fn page(
        &self,
        prefix: Prefix,
        after: Option<ObjectName>,
        token: Option<String>,
    ) -> Result<Page, Failure> {
        let prefix = format!("{}/{prefix}", self.prefix);
        let offset = after.map(|name| self.key(name).to_string());
        let options =
            PaginatedListOptions { offset, page_token: token, ..PaginatedListOptions::default() };
        let page = self.clients.pages.list_paginated(Some(&prefix), options).await;
        let page = page.map_err(|error| Failure::from_error(&error))?;
        Ok(Page { objects: page.result.objects, token: page.page_token })
    }

    /// Maximum number of keys for [`delete`](Self::delete).
    pub(super) fn deletions_max(&self) -> usize {
        if self.deletes_singly() { 1 } else { self.clients.deletions_max }
    }

    /// Whether the service cannot delete many objects with one request.
    fn deletes_singly(&self) -> bool {
        self.lacks_bulk_deletions.load(Ordering::Relaxed)
    }

    /// Deletes objects with one request. Absent objects count as deleted. Returns whether the
    /// service knows the request; if not, the caller deletes the objects one by one.
    pub(super) async fn delete(&self, keys: Vec<Path>) -> Result<bool, Failure> {
        let is_single = keys.len() == 1 && self.deletes_singly();
        let single = self.clients.single_deletions.as_ref().filter(|_| is_single);
        let keys = stream::iter(keys.into_iter().map(Ok)).boxed();
        let mut results = single.unwrap_or(&self.clients.store).delete_stream(keys);
        while let Some(deleted) = results.next().await {
            match deleted.map_err(|error| Failure::from_error(&error)) {
                Err(failure) if failure.is_absent() => {}
                Err(failure) if failure.is_unknown_request() && !is_single => {
                    self.lacks_bulk_deletions.store(true, Ordering::Relaxed);
                    return Ok(false);
                }
                deleted => drop(deleted?),
            }
        }
        Ok(true)
    }
}

/// `object_store` repeats nothing, because only this engine knows what may be repeated.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn s3_clients(
    location: &CloudLocation,
    credentials: Arc<RenewableCredentials>,
    transport: Transport,
) -> object_store::Result<Clients> {
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(location.bucket())
        .with_region(location.region().unwrap_or(DEFAULT_REGION))
        .with_credentials(Arc::clone(&credentials) as Arc<_>)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // With unsigned payloads, services make objects of uploads that were cut off.
        .with_unsigned_payload(false)
        .with_allow_http(location.is_plain())
        .with_retry(no_retries())
        .with_http_connector(transport);
    if let Some(endpoint) = location.endpoint() {
        builder = builder.with_endpoint(endpoint);
    }
    let single_deletions = builder.clone().with_disable_bulk_delete(true).build()?;
    let store = Arc::new(builder.build()?);
    Ok(Clients {
        pages: Arc::<object_store::aws::AmazonS3>::clone(&store),
        store,
        single_deletions: Some(Arc::new(single_deletions)),
        deletions_max: 1000,
        credentials: Some(credentials),
    })
}

fn gcs_client(
    location: &CloudLocation,
    key: &str,
    transport: Transport,
) -> object_store::Result<GoogleCloudStorage> {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(location.bucket())
        .with_service_account_key(key)
        .with_retry(no_retries())
        .with_http_connector(transport);
    if let Some(endpoint) = location.endpoint() {
        builder = builder.with_base_url(endpoint);
    }
    builder.build()
}

fn azure_client(
    location: &CloudLocation,
    account_name: String,
    key: AzureKey,
    transport: Transport,
) -> object_store::Result<MicrosoftAzure> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(location.bucket())
        .with_account(account_name)
        .with_allow_http(location.is_plain())
        .with_retry(no_retries())
        .with_http_connector(transport);
    builder = match key {
        AzureKey::AccountKey(key) => builder.with_access_key(&**key),
        AzureKey::SasToken(token) => {
            let token = token.trim_start_matches('?');
            builder.with_config(object_store::azure::AzureConfigKey::SasKey, token)
        }
    };
    if let Some(endpoint) = location.endpoint() {
        builder = builder.with_endpoint(endpoint.to_owned());
    }
    builder.build()
}
