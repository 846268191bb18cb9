//! The configuration of a relay: iroh's own server, which forwards encrypted packets between the members of
//! a roster and nobody else.

use lopa::error::{Error, Result};
use serde::Serialize;

use crate::roster::Roster;

/// The port of a relay whose URL has none.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// The version of iroh-relay that speaks the protocol of the linked iroh.
pub const VERSION: &str = "1.4.1";

#[derive(Serialize)]
struct Configuration<'a> {
    http_bind_addr: String,
    enable_metrics: bool,
    enable_quic_addr_discovery: bool,
    access: Access,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<Tls<'a>>,
}

#[derive(Serialize)]
struct Access {
    allowlist: Vec<String>,
}

#[derive(Serialize)]
struct Tls<'a> {
    https_bind_addr: String,
    hostname: &'a str,
    cert_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    contact: Option<&'a str>,
}

impl Roster {
    /// The configuration of iroh-relay at this URL for the members of the roster; `contact` is the
    /// e-mail address for Let's Encrypt.
    pub fn relay(&self, url: &str, contact: Option<&str>) -> Result<String> {
        let wrong = || {
            Error::config("roster/bad-relay", format!("`{url}` is not the URL of a relay"))
                .hint("write `https://relay.example.org`, or `http://relay.example.org:3340`")
        };
        let (is_secure, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong()),
        };
        let host = rest.trim_end_matches('/');
        let usual = if is_secure { HTTPS } else { HTTP };
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse::<u16>().map_err(|_| wrong())?)
            }
            _ => (host, usual),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(wrong());
        }
        let at = |port: u16| format!("[::]:{port}");
        let tls = is_secure.then(|| Tls {
            https_bind_addr: at(port),
            hostname: host,
            cert_mode: if contact.is_some() { "LetsEncrypt" } else { "Manual" },
            contact,
        });
        let configuration = Configuration {
            http_bind_addr: at(if is_secure { HTTP } else { port }),
            enable_metrics: false,
            // Nodes learn their public address from it, and so find direct paths.
            enable_quic_addr_discovery: is_secure,
            access: Access {
                allowlist: self.members.iter().map(|member| member.key.to_string()).collect(),
            },
            tls,
        };
        let text = toml::to_string(&configuration).expect("names and lists are TOML");
        Ok(format!("# For iroh-relay {VERSION}: {url}\n{text}"))
    }
}
