//! The keys of a service: from a file, or from environment variables.
//!
//! A file has one `NAME = VALUE` per line. Empty lines and lines that begin with `#` are ignored.
//!
//! | service | names |
//! |---|---|
//! | `s3://` | `access_key_id`, `secret_access_key`, and `session_token` of temporary credentials |
//! | `az://` | `account_name`, and `account_key` or `sas_token` |
//!
//! For `gs://` the file is the key of a service account, in JSON as Google writes it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use zeroize::{Zeroize, Zeroizing};

use crate::cloud_location::{CloudService, CredentialSource};
use crate::error::{OpenError, OpenErrorKind};

/// Maximum length of a file with credentials.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Keys for one service. Secret; wiped when dropped.
pub enum Credentials {
    /// Keys for Amazon S3 and compatible services.
    S3 {
        /// The public name of the key.
        access_key_id: String,
        /// The key. Secret.
        secret_access_key: Zeroizing<String>,
        /// The token of temporary credentials. Secret.
        session_token: Option<Zeroizing<String>>,
    },
    /// The key of a service account of Google, as JSON. Secret.
    Gcs(Zeroizing<String>),
    /// A key of a storage account of Azure.
    Azure {
        /// The name of the account.
        account_name: String,
        /// The key of the account, or a shared access signature. Secret.
        key: AzureKey,
    },
}

/// A secret of a storage account of Azure.
pub enum AzureKey {
    /// The key of the account, in base64.
    AccountKey(Zeroizing<String>),
    /// A shared access signature, as the query of a URL.
    SasToken(Zeroizing<String>),
}

impl Credentials {
    /// Reads the credentials that a location names.
    ///
    /// # Errors
    /// [`NoCredential`](OpenErrorKind::NoCredential) if they are missing, have another form, or are
    /// readable by other users.
    pub(crate) fn read(
        service: CloudService,
        source: &CredentialSource,
    ) -> Result<Self, OpenError> {
        let found = match source {
            CredentialSource::File(path) => {
                let shown = path.display();
                let text = read_private(path)?;
                Self::parse(service, &text)
                    .map_err(|why| format!("credentials file {shown}: {why}"))
            }
            CredentialSource::Environment => {
                Self::from_variables(service, |name| std::env::var(name).ok())
            }
        };
        found.map_err(no_credential)
    }

    /// Parses the contents of a file.
    ///
    /// # Errors
    /// A message that says what is missing or wrong, without repeating values.
    pub fn parse(service: CloudService, text: &str) -> Result<Self, String> {
        match service {
            CloudService::S3 => {
                let known = ["access_key_id", "secret_access_key", "session_token"];
                let [id, secret, session_token] = values(text, known)?;
                let missing = |name: &str| format!("it has no line {name} = …; add one");
                Ok(Self::S3 {
                    access_key_id: id.ok_or_else(|| missing(known[0]))?.to_string(),
                    secret_access_key: secret.ok_or_else(|| missing(known[1]))?,
                    session_token,
                })
            }
            CloudService::Gcs if text.trim_start().starts_with('{') => {
                Ok(Self::Gcs(Zeroizing::new(text.to_owned())))
            }
            CloudService::Gcs => {
                Err("it is not the key of a service account in JSON; download one from Google"
                    .to_owned())
            }
            CloudService::Azure => {
                let known = ["account_name", "account_key", "sas_token"];
                let [name, account_key, sas_token] = values(text, known)?;
                let key = match (account_key, sas_token) {
                    (Some(key), None) => AzureKey::AccountKey(key),
                    (None, Some(token)) => AzureKey::SasToken(token),
                    _ => {
                        return Err("it needs either account_key = … or sas_token = …".to_owned());
                    }
                };
                let name = name.ok_or("it has no line account_name = …; add one")?;
                Ok(Self::Azure { account_name: name.to_string(), key })
            }
        }
    }

    /// Reads environment variables with the names that the tools of the service use.
    fn from_variables(
        service: CloudService,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let optional =
            |name: &str| variable(name).filter(|value| !value.is_empty()).map(Zeroizing::new);
        let required = |name: &str| {
            optional(name).ok_or_else(|| {
                format!(
                    "the environment variable {name} is missing; set it, or write \
                     credentials=FILE instead of credentials=env"
                )
            })
        };
        match service {
            CloudService::S3 => Ok(Self::S3 {
                access_key_id: required("AWS_ACCESS_KEY_ID")?.to_string(),
                secret_access_key: required("AWS_SECRET_ACCESS_KEY")?,
                session_token: optional("AWS_SESSION_TOKEN"),
            }),
            CloudService::Gcs => {
                let path = required("GOOGLE_APPLICATION_CREDENTIALS")?;
                let text = read_private(Path::new(&*path)).map_err(|error| error.to_string())?;
                Self::parse(service, &text)
            }
            CloudService::Azure => {
                let key = match optional("AZURE_STORAGE_SAS_TOKEN") {
                    Some(token) => AzureKey::SasToken(token),
                    None => AzureKey::AccountKey(required("AZURE_STORAGE_ACCOUNT_KEY")?),
                };
                let account_name = required("AZURE_STORAGE_ACCOUNT_NAME")?.to_string();
                Ok(Self::Azure { account_name, key })
            }
        }
    }
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = match self {
            Self::S3 { .. } => "S3",
            Self::Gcs(_) => "Gcs",
            Self::Azure { .. } => "Azure",
        };
        f.debug_struct(service).finish_non_exhaustive()
    }
}

/// Parses lines `NAME = VALUE`. The values may be secrets, so they are wiped, and no message
/// repeats them.
fn values<const COUNT: usize>(
    text: &str,
    known: [&str; COUNT],
) -> Result<[Option<Zeroizing<String>>; COUNT], String> {
    let mut values = [const { None }; COUNT];
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let (name, value) = (name.trim(), value.trim());
        let Some(place) = known.iter().position(|known| *known == name) else {
            let known = known.join(", ");
            return Err(format!("line {number} has an unknown name; known are {known}"));
        };
        if value.is_empty() || value.contains(|c: char| c.is_control()) {
            return Err(format!("{name} (line {number}) has no valid value"));
        }
        if values[place].replace(Zeroizing::new(value.to_owned())).is_some() {
            return Err(format!("{name} occurs again in line {number}; write it once"));
        }
    }
    Ok(values)
}

/// Reads a file that other users of the machine must not read.
fn read_private(path: &Path) -> Result<Zeroizing<String>, OpenError> {
    let shown = path.display();
    let unreadable =
        |cause| no_credential(format!("cannot read the credentials file {shown}: {cause}"));
    let file = File::open(path).map_err(|cause| unreadable(cause.to_string()))?;
    let metadata = file.metadata().map_err(|cause| unreadable(cause.to_string()))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        let message =
            format!("credentials file {shown} is readable by others; run chmod 600 {shown}");
        return Err(no_credential(message));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(unreadable(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    // With this capacity no copy of the text stays behind when the string grows.
    let mut text = Zeroizing::new(String::with_capacity(metadata.len() as usize + 1));
    let read = file.take(metadata.len()).read_to_string(&mut text);
    read.map_err(|cause| unreadable(cause.to_string()))?;
    Ok(text)
}

fn no_credential(message: String) -> OpenError {
    OpenError::new(OpenErrorKind::NoCredential, message)
}

/// The current credentials for S3. They can be read again, because temporary ones expire.
pub(super) struct RenewableCredentials {
    source: CredentialSource,
    current: Mutex<Arc<AwsCredential>>,
}

impl RenewableCredentials {
    pub(super) fn new(source: CredentialSource, current: AwsCredential) -> Self {
        Self { source, current: Mutex::new(Arc::new(current)) }
    }

    /// Reads the file again. Returns whether it contains other credentials now.
    pub(super) fn renew(&self) -> bool {
        if self.source == CredentialSource::Environment {
            return false;
        }
        let read = Credentials::read(CloudService::S3, &self.source);
        let Ok(Credentials::S3 { access_key_id, secret_access_key, session_token }) = read else {
            return false;
        };
        let new = aws_credential(&access_key_id, &secret_access_key, session_token.as_deref());
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = **current != new;
        let old =
            if is_other { std::mem::replace(&mut *current, Arc::new(new)) } else { Arc::new(new) };
        drop(current);
        wipe(old);
        is_other
    }
}

pub(super) fn aws_credential(id: &str, secret: &str, token: Option<&String>) -> AwsCredential {
    let token = token.cloned();
    AwsCredential { key_id: id.to_owned(), secret_key: secret.to_owned(), token }
}

/// Wipes credentials, unless a request in flight still uses them.
fn wipe(credential: Arc<AwsCredential>) {
    if let Some(mut credential) = Arc::into_inner(credential) {
        credential.secret_key.zeroize();
        credential.token.zeroize();
    }
}

impl Drop for RenewableCredentials {
    fn drop(&mut self) {
        let empty = AwsCredential { key_id: String::new(), secret_key: String::new(), token: None };
        let current = self.current.get_mut().unwrap_or_else(PoisonError::into_inner);
        wipe(std::mem::replace(current, Arc::new(empty)));
    }
}

/// Shows no secret.
impl fmt::Debug for RenewableCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewableCredentials").field("source", &self.source).finish_non_exhaustive()
    }
}

#[async_trait]
impl CredentialProvider for RenewableCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
