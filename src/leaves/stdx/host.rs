//! Hosts and patterns of hosts, each in one spelling: what a rule names and what a connection asks for compare as values.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name in lower case and punycode without the dot at its end, or an IP address, however it was spelled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    Name(String),
    Ip(IpAddr),
}

impl Host {
    /// Reads a host as written in an address, a rule or a request; none for what could never be one.
    pub fn parse(text: &str) -> Option<Host> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Host::of_ip(ip));
        }
        // An escaped or scoped spelling has no business in a rule or a request.
        if text.contains(['%', '*', ' ']) {
            return None;
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        match url::Host::parse(text).ok()? {
            url::Host::Ipv4(ip) => Some(Host::of_ip(ip.into())),
            url::Host::Ipv6(ip) => Some(Host::of_ip(ip.into())),
            url::Host::Domain(name) => {
                let fits = name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()));
                fits.then_some(Host::Name(name))
            }
        }
    }

    /// The host of a parsed URL.
    pub fn of_url(url: &url::Url) -> Option<Host> {
        Host::parse(url.host_str()?)
    }

    /// An address; one of IPv4 that is mapped into IPv6 is the same place.
    pub fn of_ip(ip: IpAddr) -> Host {
        Host::Ip(ip.to_canonical())
    }

    /// Whether it means this machine by name, whatever a resolver says.
    pub fn is_localhost(&self) -> bool {
        matches!(self, Host::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }

    /// Whether it means this machine or a private network by itself.
    pub fn is_private(&self) -> bool {
        match self {
            Host::Name(_) => self.is_localhost(),
            Host::Ip(ip) => is_private(*ip),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

/// A host and a port, as `host:port`.
pub fn authority(text: &str) -> Option<(Host, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    // Without brackets nobody knows where an IPv6 address ends.
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return None;
    }
    Some((Host::parse(host)?, port_of(port)?))
}

fn port_of(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

/// Hosts that a rule means: `host`, `host:port`, `*.domain` (everything below it, not itself), `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    hosts: Hosts,
    /// None means every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Hosts {
    Any,
    Below(String),
    One(Host),
}

impl Pattern {
    /// Reads a pattern; none for what could never match, like a URL or a `*` that is not a whole label at the start.
    pub fn parse(text: &str) -> Option<Pattern> {
        if let Some((hosts, port)) = Hosts::parse(text).map(|hosts| (hosts, None)) {
            return Some(Pattern { hosts, port });
        }
        let (host, port) = text.rsplit_once(':')?;
        if host.contains(':') && !host.ends_with(']') {
            return None;
        }
        Some(Pattern { hosts: Hosts::parse(host)?, port: Some(port_of(port)?) })
    }

    /// This host alone: on the two ports of the web a pattern means every port, on another that port.
    pub fn of(host: &Host, port: u16) -> Pattern {
        let web = matches!(port, 80 | 443) && !host.is_private();
        Pattern { hosts: Hosts::One(host.clone()), port: (!web).then_some(port) }
    }

    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
            && match (&self.hosts, host) {
                (Hosts::Any, _) => true,
                (Hosts::One(own), host) => own == host,
                (Hosts::Below(parent), Host::Name(name)) => {
                    name.strip_suffix(parent.as_str()).is_some_and(|below| below.ends_with('.'))
                }
                (Hosts::Below(_), Host::Ip(_)) => false,
            }
    }

    /// Whether it names this very host: `*` and `*.domain` do not.
    pub fn names(&self, host: &Host, port: u16) -> bool {
        matches!(self.hosts, Hosts::One(_)) && self.covers(host, port)
    }
}

impl Hosts {
    fn parse(text: &str) -> Option<Hosts> {
        match text.strip_prefix("*.") {
            _ if text == "*" => Some(Hosts::Any),
            Some(parent) => match Host::parse(parent)? {
                Host::Name(name) => Some(Hosts::Below(name)),
                Host::Ip(_) => None,
            },
            None => Host::parse(text).map(Hosts::One),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Any => f.write_str("*")?,
            Hosts::Below(parent) => write!(f, "*.{parent}")?,
            Hosts::One(host) => host.fmt(f)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Whether an address is not one of the public internet.
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_private_v4(ip),
        IpAddr::V6(ip) => is_private_v6(ip),
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_multicast()
        || matches!((a, b, c), (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18..=19, _) | (240..=255, ..))
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // Mapped and compatible IPv4; ::1 and :: are among these.
        (0, 0) if (c, d, e) == (0, 0, 0) => f == 0 || v4(g, h),
        // IPv4 translated by a host of its own network (RFC 8215), and SIIT's ::ffff:0:a.b.c.d.
        (0, 0) if (c, d, e) == (0, 0, 0xffff) && f == 0 => true,
        // Translated IPv4, and 6to4.
        (0x64, 0xff9b) => c != 0 || v4(g, h),
        (0x2002, _) => v4(b, c),
        // Teredo hides an address of its own.
        (0x2001, 0) => true,
        // Unique local, link local, site local, multicast.
        _ => a & 0xfe00 == 0xfc00 || a & 0xff80 == 0xfe80 || a & 0xff00 == 0xff00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_spelling() {
        for (text, want) in [
            ("Example.COM", Some("example.com")),
            ("example.com.", Some("example.com")),
            ("example.com..", None),
            ("a..b", None),
            ("", None),
            (".", None),
            ("bücher.de", Some("xn--bcher-kva.de")),
            ("XN--BCHER-KVA.de", Some("xn--bcher-kva.de")),
            ("ｅｘａｍｐｌｅ。com", Some("example.com")),
            ("my_host", Some("my_host")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("0x7f.1", Some("127.0.0.1")),
            ("0177.0.0.1", Some("127.0.0.1")),
            ("127.0.0.1.", Some("127.0.0.1")),
            ("１２７.0.0.1", Some("127.0.0.1")),
            ("256.0.0.1", None),
            ("1.2.3.4.5", None),
            ("::1", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("[0:0::1]", Some("[::1]")),
            ("::ffff:127.0.0.1", Some("127.0.0.1")),
            ("[::ffff:7f00:1]", Some("127.0.0.1")),
            ("[fe80::1%eth0]", None),
            ("%6cocalhost", None),
            ("ex ample.com", None),
            ("a/b", None),
            ("a@b", None),
            ("a#b", None),
            ("a\0b", None),
            ("a\nb", None),
            ("*.example.com", None),
        ] {
            assert_eq!(Host::parse(text).map(|host| host.to_string()).as_deref(), want, "{text:?}");
        }
        assert_eq!(Host::parse(&"a".repeat(64)), None);
        assert_eq!(Host::parse(&"abc.".repeat(70)), None);
    }

    #[test]
    fn authorities() {
        for (text, want) in [
            ("example.com:443", Some("example.com 443")),
            ("[::1]:80", Some("[::1] 80")),
            ("::1:80", None),
            ("example.com", None),
            ("example.com:", None),
            ("example.com:0", None),
            ("example.com:+80", None),
            ("example.com:65536", None),
            ("user@example.com:80", None),
            (":80", None),
        ] {
            let got = authority(text).map(|(host, port)| format!("{host} {port}"));
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, host, port, want) in [
            ("example.com", "EXAMPLE.com.", 443, true),
            ("example.com", "a.example.com", 443, false),
            ("example.com", "notexample.com", 443, false),
            ("*.example.com", "a.b.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("*.example.com", "notexample.com", 443, false),
            ("example.com:8080", "example.com", 8080, true),
            ("example.com:8080", "example.com", 443, false),
            ("*.example.com:22", "a.example.com", 22, true),
            ("*:22", "x", 22, true),
            ("*:22", "x", 23, false),
            ("*", "10.0.0.1", 1, true),
            ("127.1:80", "0x7f000001", 80, true),
            ("[::1]:80", "::1", 80, true),
            ("::ffff:10.0.0.1", "10.0.0.1", 80, true),
        ] {
            let covers = Pattern::parse(pattern).unwrap().covers(&Host::parse(host).unwrap(), port);
            assert_eq!(covers, want, "{pattern} {host}:{port}");
        }
        for text in ["http://x", "exam*.com", "*.10.0.0.1", "a:b:80", "x:0", "x:y", "*example.com", ""] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
        for text in ["*", "*.a.b", "a.b", "a.b:22", "[::1]:80", "*:22"] {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn private_addresses() {
        for (ip, want) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("172.32.0.1", false),
            ("192.168.1.1", true),
            ("169.254.169.254", true),
            ("100.64.0.1", true),
            ("0.0.0.0", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("8.8.8.8", false),
            ("::1", true),
            ("::", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:8.8.8.8", false),
            ("::ffff:0:7f00:1", true),
            ("64:ff9b::a00:1", true),
            ("64:ff9b::808:808", false),
            ("2002:7f00:1::", true),
            ("fe80::1", true),
            ("fec0::1", true),
            ("fd00::1", true),
            ("fd00:ec2::254", true),
            ("ff02::1", true),
            ("2606:4700::1111", false),
        ] {
            assert_eq!(is_private(ip.parse().unwrap()), want, "{ip}");
        }
    }
}
