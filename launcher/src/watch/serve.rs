//! Serves the page on the loopback interface.
//!
//! The thread of the page is not the one that supervises the ranks, and reads the state only. A client can cost it a limited number of
//! connections, bytes and seconds: what a request may not have is refused before it is read, every connection carries one request, and JSON is
//! made at most a few times a second, however many ask.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use oflow::control::Token;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::picture::{self, End};
use super::shared::Shared;

/// Connections at a time; further ones are closed at once.
const CONNECTIONS: usize = 32;
/// Time that a connection may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a request's head, and number of its headers.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;
/// How old an answer may be that several clients get.
const FRESH: Duration = Duration::from_millis(400);
/// Pause after connections could not be accepted, as when there are no descriptors.
const PAUSE: Duration = Duration::from_millis(200);

const PAGE: &str = include_str!("page/index.html");
const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 4 4\"><path fill=\"#2a9d8f\" d=\"M0 0h2v2H0zM2 2h2v2H2z\"/></svg>";
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: [&str; 3] = [include_str!("page/draw.js"), include_str!("page/panels.js"), include_str!("page/page.js")];

/// Headers of every answer. The page may load nothing but what this server has, and nobody may embed it.
const SAFE: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// An answer that is made anew when it is no longer fresh.
#[derive(Default)]
struct Cached(Mutex<Option<(Instant, Bytes)>>);

impl Cached {
    fn get(&self, make: impl FnOnce() -> String) -> Bytes {
        // Whoever comes while it is made waits for it.
        let mut cached: MutexGuard<'_, Option<(Instant, Bytes)>> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((at, bytes)) if at.elapsed() < FRESH => bytes.clone(),
            _ => {
                let bytes = Bytes::from(make());
                *cached = Some((Instant::now(), bytes.clone()));
                bytes
            }
        }
    }
}

/// Sources of the answers.
struct Site {
    shared: Arc<Shared>,
    token: Token,
    /// Values of `Host` that are answered.
    names: [String; 3],
    page: String,
    script: String,
    state: Cached,
    metrics: Cached,
}

/// Listens on the port of the loopback interface, 0: on a free one, and serves the page on a thread of its own until the process ends. Returns
/// the address with the token.
///
/// # Errors
/// If the port is taken, or no thread can be started.
pub(super) fn start(port: u16, shared: Arc<Shared>) -> io::Result<String> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let token = Token::random().map_err(|e| io::Error::other(e.message().to_string()))?;
    let address = format!("http://127.0.0.1:{port}/?token={}", token.expose());
    let site = Arc::new(Site {
        shared,
        names: ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")),
        // Hexadecimal digits are no markup.
        page: PAGE.replace("{token}", token.expose()),
        script: SCRIPT.concat(),
        token,
        state: Cached::default(),
        metrics: Cached::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    std::thread::Builder::new().name("oflaunch-watch".into()).spawn(move || {
        runtime.block_on(async {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, router(site)).await,
                Err(e) => crate::output::complain(&format!("the page of --watch cannot be served: {e}")),
            }
        });
    })?;
    Ok(address)
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/style.css", get(|| async { text("text/css", STYLE) }))
        .route("/icon.svg", get(|| async { text("image/svg+xml", ICON) }))
        .route("/page.js", get(script))
        .route("/state.json", get(state))
        .route("/metrics.json", get(metrics))
        .route("/lines.json", get(lines))
        .route("/layout.svg", get(layout))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

async fn accept(listener: tokio::net::TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(LIMIT)
                .max_buf_size(HEAD_BYTES)
                .max_headers(HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away or is too slow is its own affair.
            let _ended = timeout(LIMIT, connection).await;
            drop(place);
        });
    }
}

/// Refuses what is not a plain question of the page to this address.
async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Result<Response, Infallible> {
    let mut response = match site.refusal(request.method(), request.uri(), request.headers()) {
        Some(code) => code.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in SAFE {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

impl Site {
    fn refusal(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<StatusCode> {
        // A page of another site that has made its name mean this address sends that name (DNS rebinding).
        let mut hosts = headers.get_all(header::HOST).iter();
        let named = hosts.next().is_some_and(|host| self.names.iter().any(|name| host.as_bytes() == name.as_bytes()));
        if !named || hosts.next().is_some() || uri.authority().is_some() {
            return Some(StatusCode::FORBIDDEN);
        }
        if !parameter(uri, "token").is_some_and(|given| alike(given.as_bytes(), self.token.expose().as_bytes())) {
            return Some(StatusCode::FORBIDDEN);
        }
        if method != Method::GET {
            return Some(StatusCode::METHOD_NOT_ALLOWED);
        }
        let empty = headers.get(header::CONTENT_LENGTH).is_none_or(|n| n.as_bytes() == b"0");
        (!empty || headers.contains_key(header::TRANSFER_ENCODING)).then_some(StatusCode::PAYLOAD_TOO_LARGE)
    }
}

/// Compares without telling by the time how much was right.
fn alike(given: &[u8], wanted: &[u8]) -> bool {
    let differences = given.iter().zip(wanted).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    given.len() == wanted.len() && differences == 0
}

/// The first value of a name in the query of an address.
fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn number(uri: &Uri, name: &str) -> Option<u64> {
    parameter(uri, name)?.parse().ok()
}

fn text(kind: &'static str, body: impl Into<Body>) -> Response {
    let kind = HeaderValue::from_str(&format!("{kind}; charset=utf-8"));
    let mut response = Response::new(body.into());
    if let Ok(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}

async fn page(State(site): State<Arc<Site>>) -> Response {
    text("text/html", site.page.clone())
}

async fn script(State(site): State<Arc<Site>>) -> Response {
    text("text/javascript", site.script.clone())
}

async fn state(State(site): State<Arc<Site>>) -> Response {
    // A page is open: the ranks are asked from now on.
    site.shared.is_asked();
    let make = || site.shared.state().to_json(Instant::now()).to_string();
    text("application/json", site.state.get(make))
}

async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let make = || site.shared.state().metrics.to_json().to_string();
    text("application/json", site.metrics.get(make))
}

async fn lines(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    let rank = number(&uri, "rank").and_then(|r| usize::try_from(r).ok());
    let found = site.shared.lines().to_json(number(&uri, "after").unwrap_or(0), rank);
    text("application/json", found.to_string())
}

async fn layout(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    let end = match parameter(&uri, "end") {
        Some("to") => End::To,
        _ => End::From,
    };
    let wanted = number(&uri, "boxing").unwrap_or(0);
    let boxing = site.shared.state().boxing(wanted).map(|b| b.seen.clone());
    match boxing.and_then(|b| picture::draw(&b, end)) {
        Some(svg) => {
            let mut response = text("image/svg+xml", svg);
            // It has a style of its own, and stands alone if somebody opens it.
            let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
            response
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_whole() {
        assert!(alike(b"abc", b"abc"));
        for wrong in [&b"abd"[..], b"ab", b"abcd", b""] {
            assert!(!alike(wrong, b"abc"), "{wrong:?}");
        }
    }

    #[test]
    fn parameters_are_found_by_their_whole_name() {
        let uri: Uri = "/x?mytoken=1&token=2&after=z&after=3".parse().unwrap();
        assert_eq!((parameter(&uri, "token"), parameter(&uri, "none"), number(&uri, "after")), (Some("2"), None, None));
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for file in [PAGE, STYLE].into_iter().chain(SCRIPT) {
            let outside = file.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains("http") && !outside.contains("//cdn"), "an address in a file of the page");
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
                assert!(!file.contains(way), "{way}: what ranks say is put in as text only");
            }
            assert!(!file.contains("style=") && !file.contains("onclick="), "the policy forbids what stands in markup");
        }
    }
}
