//! The location of a volume in an object store: `s3://BUCKET/PREFIX?credentials=FILE`.
//!
//! | part | meaning |
//! |---|---|
//! | `s3://`, `gs://`, `az://` | Amazon S3 or a compatible service, Google Cloud Storage, Azure |
//! | `BUCKET` | the bucket; at Azure the container |
//! | `/PREFIX` | what the names of all objects of the volume start with |
//! | `credentials=` | the file with the keys, percent-encoded; `env` for environment variables |
//! | `endpoint=` | the service, as `https://HOST:PORT`; default: Amazon, Google or Azure |
//! | `region=` | the region of an S3 bucket; needed at Amazon |
//! | `ca=` | a file with the certificates that sign the service's, in PEM form |
//! | `plain` | permits `endpoint=http://…`, without encryption of the connection |
//!
//! The URL contains no secret. The credentials file contains a secret.

use std::fmt;
use std::path::{Path, PathBuf};

use oblivio_wire::keys;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

use crate::remote_location::{parameters, path, shown_path};

/// A service that keeps objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloudService {
    /// Amazon S3, or a compatible service.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}

impl CloudService {
    /// Every service.
    pub const ALL: [Self; 3] = [Self::S3, Self::Gcs, Self::Azure];

    /// The URL scheme: the name before `://`.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
        }
    }
}

/// The source of the keys of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// Environment variables, with the names that the service's own tools use.
    Environment,
    /// A file.
    File(PathBuf),
}

/// The location of a volume in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudLocation {
    service: CloudService,
    bucket: String,
    /// Without a slash at its end.
    prefix: String,
    /// `https://HOST:PORT/PATH` or `http://…`, without a slash at its end.
    endpoint: Option<String>,
    region: Option<String>,
    credentials: CredentialSource,
    ca: Option<PathBuf>,
}

/// The characters to escape in an endpoint.
const ENDPOINT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b':').remove(b'-').remove(b'_').remove(b'.');

/// Maximum length of a prefix, so that names of objects stay below the 1,024 bytes that services
/// permit.
const PREFIX_BYTES_MAX: usize = 512;

/// Maximum length of a bucket's name, with the dots that Google permits.
const BUCKET_BYTES_MAX: usize = 222;

/// The value of `credentials=` for environment variables.
const ENVIRONMENT: &str = "env";

impl CloudLocation {
    /// Parses the part of a URL after `://`.
    ///
    /// # Errors
    /// A message that says what is missing or wrong, without repeating values.
    pub fn parse(service: CloudService, rest: &[u8]) -> Result<Self, String> {
        let scheme = service.scheme();
        let rest = str::from_utf8(rest).map_err(|_| {
            format!("{scheme}:// must be UTF-8; percent-encode other bytes of paths")
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if place.contains('@') {
            return Err(format!(
                "{scheme}:// contains no user and no password; write the keys into a file, and \
                 name it with credentials=FILE"
            ));
        }
        let (bucket, prefix) = place
            .split_once('/')
            .filter(|(bucket, prefix)| !bucket.is_empty() && !prefix.is_empty())
            .ok_or_else(|| format!("write it as {scheme}://BUCKET/PREFIX?credentials=FILE"))?;
        check_bucket(bucket)?;
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        check_prefix(prefix)?;

        // `plain` has no value, unlike all others.
        let fields =
            query.split('&').map(|field| if field == "plain" { "plain=yes" } else { field });
        let query = fields.collect::<Vec<_>>().join("&");
        let known = ["endpoint", "region", "credentials", "ca", "plain"];
        let [endpoint, region, credentials, ca, plain] = parameters(&query, known)?;
        if plain.is_some_and(|value| value != "yes") {
            return Err("write plain without a value".to_owned());
        }
        let endpoint = endpoint.map(parse_endpoint).transpose()?;
        check_plain(endpoint.as_deref(), plain.is_some())?;
        let region = region.map(str::to_owned);
        match (service, &region) {
            (CloudService::S3, None) if endpoint.is_none() => {
                return Err("missing &region=REGION (the region of the bucket at Amazon), or \
                            &endpoint=URL of another service"
                    .to_owned());
            }
            (CloudService::Gcs | CloudService::Azure, Some(_)) => {
                return Err(format!("region= is only for s3://; remove it from {scheme}://"));
            }
            _ => {}
        }
        if region.as_deref().is_some_and(|region| !is_word(region, "-")) {
            return Err("region= has lower-case letters, digits and -, as in eu-west-1".to_owned());
        }
        let credentials = match credentials {
            Some(ENVIRONMENT) => CredentialSource::Environment,
            Some(file) => CredentialSource::File(path(file)),
            None => return Err(no_credentials(service)),
        };
        let ca = ca.map(path);
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(Self { service, bucket, prefix, endpoint, region, credentials, ca })
    }

    /// The service.
    pub fn service(&self) -> CloudService {
        self.service
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// What the names of all objects of the volume start with, without the slash that follows it.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The URL of the service; `None` for the default of Amazon, Google or Azure.
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// The region of an S3 bucket.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The source of the keys.
    pub fn credentials(&self) -> &CredentialSource {
        &self.credentials
    }

    /// The file with the certificates that sign the service's; `None` for those of the system.
    pub fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    /// Whether connections are not encrypted.
    pub fn is_plain(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with(HTTP))
    }

    /// The paths of all local files that the location names.
    pub fn local_files(&self) -> Vec<&Path> {
        let credentials = match &self.credentials {
            CredentialSource::Environment => None,
            CredentialSource::File(path) => Some(path.as_path()),
        };
        credentials.into_iter().chain(self.ca()).collect()
    }
}

/// Displays the URL, which parses to the same value.
impl fmt::Display for CloudLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, bucket, prefix, endpoint, region, credentials, ca } = self;
        write!(f, "{}://{bucket}/{prefix}?credentials=", service.scheme())?;
        match credentials {
            CredentialSource::Environment => f.write_str(ENVIRONMENT)?,
            CredentialSource::File(path) if path.as_os_str() == ENVIRONMENT => {
                write!(f, "./{ENVIRONMENT}")?;
            }
            CredentialSource::File(path) => shown_path(path).fmt(f)?,
        }
        if let Some(endpoint) = endpoint {
            write!(f, "&endpoint={}", utf8_percent_encode(endpoint, ENDPOINT))?;
        }
        if let Some(region) = region {
            write!(f, "&region={region}")?;
        }
        if let Some(ca) = ca {
            write!(f, "&ca={}", shown_path(ca))?;
        }
        if self.is_plain() { f.write_str("&plain") } else { Ok(()) }
    }
}

const HTTP: &str = "http://";
const HTTPS: &str = "https://";

fn is_word(text: &str, also: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn check_bucket(bucket: &str) -> Result<(), String> {
    let is_valid = is_word(bucket, "-_.")
        && (3..=BUCKET_BYTES_MAX).contains(&bucket.len())
        && bucket.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_valid.then_some(()).ok_or_else(|| {
        "a bucket name has at least 3 letters, digits, -, _ or ., the first a letter or digit"
            .to_owned()
    })
}

fn check_prefix(prefix: &str) -> Result<(), String> {
    let is_part = |part: &str| is_word(part, "-_.") && part.contains(|c| c != '.');
    let is_valid = prefix.split('/').all(is_part) && prefix.len() <= PREFIX_BYTES_MAX;
    is_valid.then_some(()).ok_or_else(|| {
        format!(
            "the prefix after the bucket has at most {PREFIX_BYTES_MAX} letters, digits, -, _, . \
             and / between parts"
        )
    })
}

fn parse_endpoint(value: &str) -> Result<String, String> {
    let form = || "write endpoint=https://HOST or endpoint=https://HOST:PORT".to_owned();
    let decoded: Vec<u8> = percent_decode(value.as_bytes()).collect();
    let url = String::from_utf8(decoded).map_err(|_| form())?;
    let (scheme, rest) = [HTTPS, HTTP]
        .iter()
        .find_map(|scheme| Some((scheme, url.strip_prefix(scheme)?)))
        .ok_or_else(form)?;
    let (authority, folder) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err("endpoint= contains no user and no password; remove them".to_owned());
    }
    keys::host_and_port(authority).ok_or_else(form)?;
    let folder = folder.strip_suffix('/').unwrap_or(folder);
    if folder.is_empty() {
        return Ok(format!("{scheme}{authority}"));
    }
    check_prefix(folder).map_err(|_| form())?;
    Ok(format!("{scheme}{authority}/{folder}"))
}

fn check_plain(endpoint: Option<&str>, is_plain: bool) -> Result<(), String> {
    match (endpoint.is_some_and(|url| url.starts_with(HTTP)), is_plain) {
        (true, false) => Err("endpoint=http:// sends everything unencrypted; write https://, or \
                              add &plain if the network is yours"
            .to_owned()),
        (false, true) => Err("plain is only for endpoint=http://…; remove it".to_owned()),
        _ => Ok(()),
    }
}

fn no_credentials(service: CloudService) -> String {
    let (file, variables) = match service {
        CloudService::S3 => (
            "with the lines access_key_id = … and secret_access_key = …",
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        CloudService::Gcs => {
            ("with the key of a service account in JSON", "GOOGLE_APPLICATION_CREDENTIALS")
        }
        CloudService::Azure => (
            "with the lines account_name = … and account_key = …",
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        ),
    };
    format!(
        "missing &credentials=FILE (a file {file}, readable only by you), or &credentials=env for \
         the environment variables {variables}"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(url: &str) -> Result<CloudLocation, String> {
        let (scheme, rest) = url.split_once("://").unwrap();
        let service = CloudService::ALL.into_iter().find(|it| it.scheme() == scheme).unwrap();
        CloudLocation::parse(service, rest.as_bytes())
    }

    #[test]
    fn urls_round_trip() {
        for url in [
            "s3://bucket/a/b?credentials=/srv/keys&region=eu-west-1",
            "s3://my.bucket-1/p/?credentials=env&endpoint=https://minio.example:9000",
            "s3://bucket/p?endpoint=https%3A%2F%2Fhost%2Fstorage%2Fv1/&credentials=k%20y",
            "s3://bucket/p?endpoint=http://[::1]:8333&plain&credentials=./env&ca=c%26",
            "gs://bucket/p?credentials=key.json",
            "gs://bucket/p?credentials=%ff,%25&ca=/etc/ca.pem",
            "az://container/p?credentials=env&endpoint=http://127.0.0.1:10000/account&plain",
        ] {
            let place = parse(url).unwrap();
            let shown = place.to_string();
            assert_eq!(parse(&shown), Ok(place), "{shown}");
            assert!(!shown.contains(','), "a list of locations is split at commas: {shown}");
        }
        let place = parse("s3://bucket/a/b/?credentials=k&endpoint=http://h:1/&plain").unwrap();
        assert_eq!((place.bucket(), place.prefix()), ("bucket", "a/b"));
        assert_eq!((place.endpoint(), place.is_plain()), (Some("http://h:1"), true));
        assert_eq!(place.local_files(), [Path::new("k")]);
        let file = CredentialSource::File("env".into());
        let place = CloudLocation { credentials: file, ..place };
        assert!(place.to_string().contains("credentials=./env"), "{place}");
    }

    #[test]
    fn errors_name_what_is_missing_and_repeat_no_values() {
        for (url, expected) in [
            ("s3://bucket/p?region=r", "missing &credentials=FILE"),
            ("s3://bucket/p?region=r", "secret_access_key = …"),
            ("gs://bucket/p", "service account"),
            ("az://bucket/p", "account_name = …"),
            ("s3://bucket/p?credentials=k", "missing &region=REGION"),
            ("s3://bucket?credentials=k", "s3://BUCKET/PREFIX"),
            ("gs:///p?credentials=k", "gs://BUCKET/PREFIX"),
            ("s3://me:secret@bucket/p?credentials=k", "no user and no password"),
            ("s3://b/p?credentials=k", "a bucket name has"),
            ("s3://bucket/a//b?credentials=k", "the prefix after the bucket"),
            ("s3://bucket/../b?credentials=k", "the prefix after the bucket"),
            ("s3://bucket/p?credentials=k&endpoint=http://h", "&plain"),
            ("s3://bucket/p?credentials=k&endpoint=https://h&plain", "remove it"),
            ("s3://bucket/p?credentials=k&endpoint=https://h&plain=secret", "without a value"),
            ("s3://bucket/p?credentials=k&endpoint=https://a:secret@h", "no user and no password"),
            ("s3://bucket/p?credentials=k&endpoint=ftp://h", "endpoint=https://HOST"),
            ("s3://bucket/p?credentials=k&endpoint=https://h:0", "endpoint=https://HOST"),
            ("s3://bucket/p?credentials=k&endpoint=https://h/a?secret", "endpoint=https://HOST"),
            ("s3://bucket/p?credentials=k&region=a%20b", "region="),
            ("gs://bucket/p?credentials=k&region=a", "only for s3://"),
            ("s3://bucket/p?credentials=k&secret=1", "parameter 2 after the question mark"),
            ("s3://bucket/p?credentials=k&credentials=secret", "occurs again"),
            ("s3://bucket/p?credentials=&region=a", "has no value"),
        ] {
            let refused = parse(url).unwrap_err();
            assert!(refused.contains(expected), "{url}: {refused}");
            let shown = refused.replace("secret_access_key", "");
            assert!(!shown.contains("secret"), "it repeats a possible secret: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_parses_back(
            rest in "[ab./]{0,8}/[ab./]{0,8}\\?(credentials=[a-z%0-9/]{0,6}|&|endpoint=https?://|\
                     [a:.\\[\\]/@0-9]{1,6}|plain|ca=[a%]{1,3}|region=[a-z-]{1,4}){0,8}"
        ) {
            for service in CloudService::ALL {
                if let Ok(place) = CloudLocation::parse(service, rest.as_bytes()) {
                    let shown = place.to_string();
                    let (_, again) = shown.split_once("://").unwrap();
                    prop_assert_eq!(CloudLocation::parse(service, again.as_bytes()), Ok(place));
                }
            }
        }
    }
}
