//! Accepts requests by their `Host`, `Origin` and `Sec-Fetch-Site` headers.
//!
//! The token keeps other users of the host out. These checks prevent other web pages in the same browser from using the
//! server if they learn its address: requests with another host name that resolves to this server (DNS rebinding), and
//! requests that the browser marks as cross-site, are refused.

use axum::http::{HeaderMap, Uri, header};
use std::net::{IpAddr, SocketAddr};

/// The address and port that the headers `Host` and `Origin` must name.
pub struct OriginPolicy {
    port: u16,
    /// The address; `None` permits any address of this host.
    address: Option<IpAddr>,
}

impl OriginPolicy {
    pub fn new(served: SocketAddr) -> Self {
        let address = served.ip();
        Self {
            port: served.port(),
            address: (!address.is_unspecified()).then_some(address),
        }
    }

    /// Whether `Host` names this server, and `Origin` and `Sec-Fetch-Site`, if present, name its own page or no page.
    pub fn admits(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(host) = only(headers, header::HOST).filter(|host| self.is_ours(host)) else {
            return false;
        };
        let meant = uri.authority().is_none_or(|a| a.as_str() == host);
        let origin = match headers.contains_key(header::ORIGIN) {
            true => only(headers, header::ORIGIN).and_then(|o| o.strip_prefix("http://")) == Some(host),
            false => true,
        };
        let site = match headers.contains_key("sec-fetch-site") {
            true => only(headers, "sec-fetch-site").is_some_and(|s| s == "same-origin" || s == "none"),
            false => true,
        };
        meant && origin && site
    }

    /// Whether a `Host` value is an address of this server or `localhost`. Any other name may belong to another site.
    fn is_ours(&self, host: &str) -> bool {
        let loopback = |address: IpAddr| address.is_loopback();
        if let Some(port) = host.strip_prefix("localhost:") {
            return self.is_our_port(port) && self.address.is_none_or(loopback);
        }
        let Some((name, port)) = host.rsplit_once(':') else {
            return false;
        };
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let address = match bare {
            Some(six) => six.parse().ok().map(IpAddr::V6),
            None => name.parse().ok().map(IpAddr::V4),
        };
        self.is_our_port(port)
            && address.is_some_and(|named: IpAddr| {
                self.address
                    .is_none_or(|own| own == named || own.is_loopback() && named.is_loopback())
            })
    }

    fn is_our_port(&self, port: &str) -> bool {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse() == Ok(self.port)
    }
}

/// The value of a header that is present exactly once.
fn only(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;
    use proptest::prelude::*;

    fn admits(served: &str, headers: &[(&'static str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        OriginPolicy::new(served.parse().unwrap()).admits(&Uri::from_static("/"), &map)
    }

    #[test]
    fn the_address_served_is_admitted_and_names_of_others_are_not() {
        let own = "127.0.0.1:8000";
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"] {
            assert!(admits(own, &[("host", host)]), "{host}");
        }
        let strange = [
            "",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:8000:8000",
            "evil.example:8000",
            "localhost.evil.example:8000",
            "evil.example",
            "127.0.0.1.evil.example:8000",
            "10.0.0.1:8000",
            "localhost:08000x",
            "localhost:+8000",
            "user@127.0.0.1:8000",
            "0.0.0.0:8000",
        ];
        for host in strange {
            assert!(!admits(own, &[("host", host)]), "{host}");
        }
        assert!(!admits(own, &[]) && !admits(own, &[("host", own), ("host", own)]));
    }

    #[test]
    fn told_to_listen_elsewhere_that_address_is_ours() {
        let host = |served, host| admits(served, &[("host", host)]);
        assert!(host("10.0.0.1:8000", "10.0.0.1:8000"));
        assert!(!host("10.0.0.1:8000", "localhost:8000") && !host("10.0.0.1:8000", "10.0.0.2:8000"));
        assert!(host("0.0.0.0:8000", "10.0.0.2:8000") && host("0.0.0.0:8000", "localhost:8000"));
        assert!(host("[fd00::1]:8000", "[fd00::1]:8000"));
        assert!(!host("0.0.0.0:8000", "server.example:8000"));
    }

    #[test]
    fn what_other_pages_ask_for_is_refused() {
        let own = ("host", "127.0.0.1:8000");
        let with = |name, value| admits("127.0.0.1:8000", &[own, (name, value)]);
        assert!(with("origin", "http://127.0.0.1:8000"));
        for foreign in [
            "null",
            "http://evil.example",
            "https://127.0.0.1:8000",
            "http://localhost:8000",
            "http://127.0.0.1:8001",
        ] {
            assert!(!with("origin", foreign), "{foreign}");
        }
        assert!(with("sec-fetch-site", "same-origin") && with("sec-fetch-site", "none"));
        for foreign in ["cross-site", "same-site", "", "None"] {
            assert!(!with("sec-fetch-site", foreign), "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn no_host_with_a_letter_is_ours_but_localhost(host in "[ -~]{0,30}") {
            let ours = admits("127.0.0.1:8000", &[("host", &host)]);
            prop_assert!(!ours || host == "localhost:8000" || !host.contains(|c: char| c.is_ascii_alphabetic()));
        }
    }
}
