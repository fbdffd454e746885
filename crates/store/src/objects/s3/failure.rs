//! Why a request failed, and what follows from it.

use std::error::Error as StdError;

use oblivio_core::error::sanitize_message;
use oblivio_core::{StoreError, StoreErrorKind};

/// Why the service did not do what a request asked. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// There was no connection, so the request was not sent.
    #[error("{0}")]
    NotSent(String),
    /// The certificate of the service is not trusted. The request was not sent.
    #[error("{0}")]
    Untrusted(String),
    /// The request may have been sent, and its answer was lost.
    #[error("{0}")]
    Lost(String),
    /// The service answered with an error.
    #[error("{0}")]
    Refused(Refusal),
    /// The answer has an invalid form.
    #[error("{0}")]
    Invalid(String),
}

/// An error that the service reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The status of HTTP.
    pub(super) status: u16,
    /// The code of the error in the answer, such as `SlowDown`; empty if the answer contains none.
    pub(super) code: String,
    /// The explanation in the answer.
    pub(super) message: String,
}

/// What a failed creation may have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreationVerdict {
    /// An object of that name exists.
    Exists,
    /// Nothing was created, and the same request may succeed later.
    TryAgain,
    /// The object may exist, be cut off, or still appear.
    Unknown,
    /// The service will not create the object.
    Refused,
}

impl Failure {
    /// Finds the failure that an error of `object_store` was made from.
    pub(super) fn from_error(error: &object_store::Error) -> Self {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = error.downcast_ref::<Self>() {
                return failure.clone();
            }
            cause = error.source();
        }
        let mut innermost: &dyn StdError = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        let message = sanitize_message(&innermost.to_string());
        // The only form in which `object_store` reports a part of a batch of Azure.
        if message.ends_with("(code: 404)") {
            return Self::Refused(Refusal { status: 404, code: String::new(), message });
        }
        Self::Invalid(format!("unexpected answer ({message})"))
    }

    /// The refusal, if the service answered with an error.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub(super) fn is_absent(&self) -> bool {
        self.refusal().is_some_and(|it| it.status == 404 && !it.is_without_bucket())
    }

    /// Whether the object ends before the requested range.
    pub(super) fn is_past_the_end(&self) -> bool {
        self.refusal().is_some_and(|it| it.status == 416)
    }

    /// Whether the service lacks the request that deletes many objects.
    pub(super) fn is_unknown_request(&self) -> bool {
        self.refusal().is_some_and(|it| {
            matches!(it.status, 405 | 501)
                || matches!(it.code.as_str(), "NotImplemented" | "MethodNotAllowed")
        })
    }

    /// Whether other credentials may be accepted.
    pub(super) fn is_about_credentials(&self) -> bool {
        self.refusal().is_some_and(Refusal::is_about_credentials)
    }

    /// Whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::Lost(_) => true,
            Self::Untrusted(_) | Self::Invalid(_) => false,
            Self::Refused(refusal) => refusal.is_transient(),
        }
    }

    /// What a creation that failed so may have done.
    pub(super) fn of_creation(&self) -> CreationVerdict {
        use CreationVerdict::{Exists, Refused, TryAgain, Unknown};
        match self {
            Self::NotSent(_) => TryAgain,
            Self::Untrusted(_) => Refused,
            Self::Lost(_) | Self::Invalid(_) => Unknown,
            Self::Refused(refusal) => match (refusal.status, refusal.code.as_str()) {
                // Another request is creating the object, and its outcome is open: Amazon's
                // documentation says to send the request again.
                (409, "ConditionalRequestConflict" | "OperationAborted") => TryAgain,
                (304 | 409 | 412, _) => Exists,
                (429 | 503, _) | (_, "SlowDown") => TryAgain,
                (408 | 500..=599, _) | (_, "RequestTimeout" | "IncompleteBody") => Unknown,
                _ => Refused,
            },
        }
    }

    /// The error for the caller. `act` says what failed, as the end of the sentence "cannot …".
    pub(super) fn store_error(&self, act: &str) -> StoreError {
        let (kind, advice) = self.advice();
        StoreError::new(kind, format!("cannot {act}: {self}{advice}"))
    }

    fn advice(&self) -> (StoreErrorKind, &'static str) {
        use StoreErrorKind::{Failed, Refused, Unreachable};
        match self {
            Self::NotSent(_) | Self::Lost(_) => {
                (Unreachable, "; check the endpoint and the network")
            }
            Self::Untrusted(_) => (
                Refused,
                "; check the endpoint, or write &ca=FILE with the certificate of its authority",
            ),
            Self::Invalid(_) => {
                (Failed, "; check that the endpoint is an object store, and not a proxy")
            }
            Self::Refused(refusal) => refusal.advice(),
        }
    }
}

impl Refusal {
    fn is_without_bucket(&self) -> bool {
        matches!(self.code.as_str(), "NoSuchBucket" | "ContainerNotFound")
    }

    fn is_about_credentials(&self) -> bool {
        self.is_expired()
            || matches!(
                self.code.as_str(),
                "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AuthenticationFailed"
            )
    }

    fn is_expired(&self) -> bool {
        matches!(self.code.as_str(), "ExpiredToken" | "TokenRefreshRequired" | "InvalidToken")
    }

    fn is_transient(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(
                self.code.as_str(),
                "SlowDown" | "InternalError" | "RequestTimeout" | "ServerBusy" | "OperationAborted"
            )
    }

    fn advice(&self) -> (StoreErrorKind, &'static str) {
        use StoreErrorKind::{Failed, Full, Refused, Unreachable};
        match (self.status, self.code.as_str()) {
            _ if self.is_without_bucket() => {
                (Refused, "; create the bucket, or check its name, the region and the endpoint")
            }
            (_, "RequestTimeTooSkewed") => (
                Refused,
                "; the clocks of this machine and of the service differ: set the clock of this \
                 machine",
            ),
            _ if self.is_expired() => (
                Refused,
                "; the temporary credentials have expired: write new ones into the file that \
                 credentials= names",
            ),
            _ if self.is_about_credentials() => {
                (Refused, "; check the keys in the file that credentials= names")
            }
            (301 | 307 | 308, _)
            | (_, "AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect") => {
                (Refused, "; the bucket is in another region: write &region=REGION")
            }
            (507, _) | (_, "QuotaExceeded" | "QuotaExceededException" | "XMinioStorageFull") => {
                (Full, "; make room in the bucket, or raise its quota")
            }
            (401 | 403, _) | (_, "AccessDenied") => (
                Refused,
                "; grant these credentials reading, writing, deleting and listing \
                 (s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket). Without \
                 s3:ListBucket a service also refuses reads of absent objects",
            ),
            _ if self.is_transient() => (Unreachable, "; try again later"),
            _ => (Failed, "; check that the service supports this request"),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, code, message } = self;
        write!(f, "the service says {status}")?;
        for part in [code, message] {
            if !part.is_empty() {
                write!(f, ", {}", sanitize_message(part))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> Failure {
        Failure::Refused(Refusal { status, code: code.into(), message: String::new() })
    }

    #[test]
    fn creations_are_judged_by_what_may_exist() {
        use CreationVerdict::{Exists, Refused, TryAgain, Unknown};
        for (failure, verdict) in [
            (Failure::NotSent(String::new()), TryAgain),
            (Failure::Lost(String::new()), Unknown),
            (Failure::Invalid(String::new()), Unknown),
            (Failure::Untrusted(String::new()), Refused),
            (refused(412, "PreconditionFailed"), Exists),
            (refused(409, "BlobAlreadyExists"), Exists),
            (refused(409, ""), Exists),
            (refused(409, "ConditionalRequestConflict"), TryAgain),
            (refused(503, "SlowDown"), TryAgain),
            (refused(503, ""), TryAgain),
            (refused(429, ""), TryAgain),
            (refused(500, "InternalError"), Unknown),
            (refused(504, ""), Unknown),
            (refused(400, "RequestTimeout"), Unknown),
            (refused(403, "AccessDenied"), Refused),
            (refused(404, "NoSuchBucket"), Refused),
            (refused(400, "InvalidArgument"), Refused),
        ] {
            assert_eq!(failure.of_creation(), verdict, "{failure:?}");
        }
    }

    #[test]
    fn an_absent_object_in_a_batch_of_azure_is_absent() {
        let failure = |code: u16| {
            let source = format!("Bulk delete request failed for key k: none (code: {code})");
            Failure::from_error(&object_store::Error::Generic { store: "", source: source.into() })
        };
        assert!(failure(404).is_absent());
        assert!(matches!(failure(403), Failure::Invalid(_)));
    }

    #[test]
    fn a_missing_bucket_is_no_absent_object() {
        assert!(refused(404, "NoSuchKey").is_absent());
        assert!(refused(404, "").is_absent());
        assert!(!refused(404, "NoSuchBucket").is_absent());
        assert!(!refused(404, "ContainerNotFound").is_absent());
        let error = refused(404, "NoSuchBucket").store_error("read object x");
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        assert!(error.to_string().contains("create the bucket"), "{error}");
    }
}
