//! Access control: decides which response each request gets.

use std::net::SocketAddr;

use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, Request, StatusCode};

use super::token::Tokens;

/// The response that an admitted request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// A redirect to the page, in exchange for the ticket.
    Entrance,
    Page,
    Events,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The `Host` is not a name of this server, or the request line names a server, as for a proxy.
    /// This stops DNS rebinding: a foreign page whose name resolves to this machine.
    Name,
    /// The request has no `Host` header, or more than one.
    NotOneHost,
    /// The request comes from a page of another origin.
    Origin,
    Method,
    /// The token is wrong or missing. A client without the token learns only that a server runs
    /// here.
    NotThere,
    /// The ticket was used before.
    Used,
    /// The maximum number of readers is connected.
    Full,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Name => StatusCode::MISDIRECTED_REQUEST,
            Self::NotOneHost => StatusCode::BAD_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotThere => StatusCode::NOT_FOUND,
            Self::Used => StatusCode::GONE,
            Self::Full => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The text of the refusal, which tells the person what to do.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Name => {
                "This server answers only under its own address. Open the page at the address \
                 that was printed. If the port is forwarded from another machine, use the same \
                 number on both sides.\n"
            }
            Self::NotOneHost => "A request must have exactly one Host header.\n",
            Self::Origin => {
                "Other pages may not read this one. Open the address as it was printed.\n"
            }
            Self::Method => "Only GET is supported.\n",
            Self::NotThere => {
                "Nothing here. Open the whole address that was printed when the disk was served, \
                 with the part after the port. It changes each time.\n"
            }
            Self::Used => {
                "This address was already used; it works once. The browser that used it still \
                 shows the page: copy the page's address from there. If it was not you, another \
                 user of this machine sees the page: stop the program that serves it.\n"
            }
            Self::Full => "Too many pages of this disk are open; close one and reload this one.\n",
        }
    }
}

/// Checks a request before any work on it starts.
pub(super) fn admit<B>(
    request: &Request<B>,
    address: SocketAddr,
    tokens: &Tokens,
) -> Result<Admitted, Refusal> {
    let headers = request.headers();
    if headers.get_all(HOST).iter().count() != 1 {
        return Err(Refusal::NotOneHost);
    }
    let name = one(headers, HOST).filter(|name| is_own_name(name, address)).ok_or(Refusal::Name)?;
    if request.uri().authority().is_some() {
        // The absolute form of a request line is for proxies.
        return Err(Refusal::Name);
    }
    let is_same_origin = |origin: &str| origin.strip_prefix("http://") == Some(name);
    if headers.contains_key(ORIGIN) && !one(headers, ORIGIN).is_some_and(is_same_origin) {
        return Err(Refusal::Origin);
    }
    if request.method() != Method::GET {
        return Err(Refusal::Method);
    }
    let path = request.uri().path().trim_start_matches('/');
    let (path_token, rest) = path.split_once('/').unwrap_or((path, ""));
    match rest {
        "" if tokens.ticket.is(path_token) => Ok(Admitted::Entrance),
        "" if tokens.page.is(path_token) => Ok(Admitted::Page),
        "events" if tokens.page.is(path_token) => Ok(Admitted::Events),
        _ => Err(Refusal::NotThere),
    }
}

/// The value of a header that occurs exactly once and is text; otherwise `None`.
fn one(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a `Host` header names the server at `address`, a loopback address. Letter case does not
/// matter. A page from elsewhere could use another name, whose DNS entry points to this machine.
pub fn is_own_name(name: &str, address: SocketAddr) -> bool {
    const HTTP_PORT: u16 = 80;
    let name = name.to_ascii_lowercase();
    let port = address.port().to_string();
    ["127.0.0.1", "localhost", "[::1]"].into_iter().any(|own| match name.strip_prefix(own) {
        // Browsers omit the default port.
        Some("") => address.port() == HTTP_PORT,
        Some(rest) => rest.strip_prefix(':') == Some(&port),
        None => false,
    }) || name == address.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn only_the_servers_own_names_are_accepted() {
        let (address, tokens) = ("127.0.0.1:4711".parse().unwrap(), Tokens::draw().unwrap());
        let path = format!("/{}/", tokens.page.as_str());
        for name in ["127.0.0.1:4711", "localhost:4711", "LocalHost:4711", "[::1]:4711"] {
            assert_eq!(
                admit(&fetch(&path, &[("host", name)]), address, &tokens),
                Ok(Admitted::Page)
            );
        }
        for name in [
            "evil.example:4711",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:+4711",
            "localhost:04711",
            "127.0.0.1:4711.evil.example",
            "localhost.evil.example:4711",
            "127.0.0.1.evil.example:4711",
            "",
        ] {
            let request = fetch(&path, &[("host", name)]);
            assert_eq!(admit(&request, address, &tokens), Err(Refusal::Name), "{name}");
        }
        let twice = [("host", "127.0.0.1:4711"), ("host", "127.0.0.1:4711")];
        assert_eq!(admit(&fetch(&path, &twice), address, &tokens), Err(Refusal::NotOneHost));
        assert_eq!(admit(&fetch(&path, &[]), address, &tokens), Err(Refusal::NotOneHost));
        let by_a_proxy = fetch(&format!("http://evil.example{path}"), &twice[..1]);
        assert_eq!(admit(&by_a_proxy, address, &tokens), Err(Refusal::Name));
        let at_the_usual_port = fetch(&path, &[("host", "localhost")]);
        let address = "127.0.0.1:80".parse().unwrap();
        assert_eq!(admit(&at_the_usual_port, address, &tokens), Ok(Admitted::Page));
        let elsewhere = fetch(&path, &[("host", "127.0.0.2:4711")]);
        let address = "127.0.0.2:4711".parse().unwrap();
        assert_eq!(admit(&elsewhere, address, &tokens), Ok(Admitted::Page));
    }

    #[test]
    fn foreign_origins_are_refused() {
        let (address, tokens) = ("127.0.0.1:4711".parse().unwrap(), Tokens::draw().unwrap());
        let path = format!("/{}/events", tokens.page.as_str());
        let from = |origin| {
            let request = fetch(&path, &[("host", "127.0.0.1:4711"), ("origin", origin)]);
            admit(&request, address, &tokens)
        };
        assert_eq!(from("http://127.0.0.1:4711"), Ok(Admitted::Events));
        for origin in
            ["http://evil.example", "null", "https://127.0.0.1:4711", "http://127.0.0.1:8080", ""]
        {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn without_the_token_there_is_nothing() {
        let (address, tokens) = ("127.0.0.1:4711".parse().unwrap(), Tokens::draw().unwrap());
        let path_token = tokens.page.as_str();
        let outcome =
            |path: &str| admit(&fetch(path, &[("host", "127.0.0.1:4711")]), address, &tokens);
        assert_eq!(outcome(&format!("/{path_token}")), Ok(Admitted::Page));
        for path in [
            "/",
            "//",
            "/events",
            "/x/events",
            &format!("/{}/", &path_token[1..]),
            &format!("/{path_token}/x"),
        ] {
            assert_eq!(outcome(path), Err(Refusal::NotThere), "{path}");
        }
        let ticket = tokens.ticket.as_str();
        assert_eq!(outcome(&format!("/{ticket}/")), Ok(Admitted::Entrance));
        assert_eq!(outcome(&format!("/{ticket}/events")), Err(Refusal::NotThere));
        let mut post = fetch(&format!("/{path_token}/"), &[("host", "127.0.0.1:4711")]);
        *post.method_mut() = Method::POST;
        assert_eq!(admit(&post, address, &tokens), Err(Refusal::Method));
    }
}
