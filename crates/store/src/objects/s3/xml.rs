//! The few parts of XML answers that this engine reads itself.

use super::failure::Refusal;

/// An answer to a deletion of many objects in which nothing failed.
pub(super) const EMPTY_DELETION: &[u8] =
    b"<DeleteResult><Deleted><Key>-</Key></Deleted></DeleteResult>";

/// Reads an error of a service. Any text is accepted.
pub(super) fn refusal(status: u16, body: &str) -> Refusal {
    let code = element(body, "Code").unwrap_or_default();
    // An answer that is neither XML nor an object store's may be a whole page.
    let message = element(body, "Message").unwrap_or_default();
    Refusal { status, code: code.to_owned(), message: message.to_owned() }
}

/// Checks the answer to a deletion of many objects. `object_store` would panic if an error named an
/// object that was not in the request.
///
/// # Errors
/// The first error in the answer, except for objects that were absent.
pub(super) fn check_deletions(answer: &[u8]) -> Result<(), Refusal> {
    let answer = String::from_utf8_lossy(answer);
    let mut rest = &*answer;
    while let Some(start) = rest.find("<Error>") {
        rest = &rest[start..];
        let end = rest.find("</Error>").unwrap_or(rest.len());
        let (error, after) = rest.split_at(end);
        let refusal = refusal(200, error);
        if refusal.code != "NoSuchKey" {
            return Err(refusal);
        }
        rest = after;
    }
    Ok(())
}

/// The text of the first element `name`. Names and codes of services need no escapes.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once('<')?;
    Some(text.trim())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_answer_is_read(
            answer in "(<Error>|</Error>|<Code>|<Message>|</|<|>|NoSuchKey|é|&#0;){0,20}"
        ) {
            let _ = check_deletions(answer.as_bytes());
            let _ = refusal(500, &answer);
        }
    }

    #[test]
    fn errors_are_read_from_any_text() {
        let body = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code>\
                    <Message>Please reduce</Message></Error>";
        let refusal = refusal(503, body);
        assert_eq!(
            (refusal.code.as_str(), refusal.message.as_str()),
            ("SlowDown", "Please reduce")
        );
        for body in ["", "<Code>", "<Code", "no XML", "<Code></Code><Message>"] {
            assert_eq!(super::refusal(500, body).code, "");
        }
    }

    #[test]
    fn failed_deletions_are_found() {
        let error = |code| format!("<Error><Key>k</Key><Code>{code}</Code></Error>");
        let answer = |parts: &[String]| format!("<DeleteResult>{}</DeleteResult>", parts.join(""));
        assert_eq!(check_deletions(EMPTY_DELETION), Ok(()));
        assert_eq!(check_deletions(answer(&[error("NoSuchKey")]).as_bytes()), Ok(()));
        let both = answer(&[error("NoSuchKey"), error("AccessDenied")]);
        assert_eq!(check_deletions(both.as_bytes()).unwrap_err().code, "AccessDenied");
        assert!(check_deletions(b"<Error>").is_err());
    }
}
