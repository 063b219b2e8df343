//! Which addresses a request may go to, decided after names are resolved.
//!
//! A name proves nothing: whoever owns it lets it point at the machine's own services, at the cloud's metadata, at a neighbour. So the address
//! that is connected to has to be a public one, or one that a grant covers. Which are not public: IANA's registries of special-purpose addresses
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, <https://www.iana.org/assignments/iana-ipv6-special-registry>). An IPv6 address that
//! carries an IPv4 one is judged by that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Addresses that are allowed beside public ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Addresses(Vec<IpNet>);

impl Addresses {
    /// Public ones, and these. Their order does not matter.
    pub(crate) fn public_and(nets: impl IntoIterator<Item = IpNet>) -> Self {
        let mut nets: Vec<IpNet> = nets.into_iter().map(|net| net.trunc()).collect();
        nets.sort_unstable();
        nets.dedup();
        Self(nets)
    }

    /// Lets an address pass.
    ///
    /// # Errors
    /// What kind of address it is.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), &'static str> {
        let address = meant(address);
        match not_public(address) {
            Some(kind) if !self.0.iter().any(|net| net.contains(&address)) => Err(kind),
            _ => Ok(()),
        }
    }
}

/// The address that a packet to `address` ends at: the IPv4 one where an IPv6 address carries it.
fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match [a, b, c, d, e, f] {
        // Mapped (RFC 4291, 2.5.5.2), translated (RFC 2765), NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => v4(g, h),
        // Compatible (RFC 4291, 2.5.5.1), which `::` and `::1` only look like.
        [0, 0, 0, 0, 0, 0] if g != 0 => v4(g, h),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => not_public_v4(v4),
        IpAddr::V6(v6) => not_public_v6(v6),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let kind = match address.octets() {
        [0, ..] => "unspecified",
        [127, ..] => "loopback",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private",
        [169, 254, ..] => "link-local",
        [100, 64..=127, ..] => "shared by a carrier's customers",
        [192, 0, 0, _] => "reserved",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "for documentation",
        [192, 88, 99, _] => "reserved",
        [198, 18..=19, ..] => "for benchmarks",
        // Azure's own services for a virtual machine: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
        [168, 63, 129, 16] => "the cloud's own",
        [224..=239, ..] => "multicast",
        [240..=255, ..] => "reserved",
        _ => return None,
    };
    Some(kind)
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let kind = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0xfec0..=0xfeff, ..] | [0xfc00..=0xfdff, ..] => "private",
        [0xff00..=0xffff, ..] => "multicast",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "for documentation",
        // Protocol assignments, Teredo among them, whose inner address is as good as chosen by the sender.
        [0x2001, 0..=0x1ff, ..] => "reserved",
        // All global unicast is in 2000::/3.
        [0x2000..=0x3fff, ..] => return None,
        _ => "reserved",
    };
    Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(address: &str) -> &'static str {
        Addresses::default().check(address.parse().unwrap()).err().unwrap_or("public")
    }

    /// The registries' blocks, at both of their ends.
    #[test]
    fn only_public_addresses_are_allowed_by_themselves() {
        for (address, expected) in [
            ("0.0.0.0", "unspecified"),
            ("0.255.255.255", "unspecified"),
            ("1.0.0.0", "public"),
            ("9.255.255.255", "public"),
            ("10.0.0.0", "private"),
            ("10.255.255.255", "private"),
            ("11.0.0.0", "public"),
            ("100.63.255.255", "public"),
            ("100.64.0.0", "shared by a carrier's customers"),
            ("100.100.100.200", "shared by a carrier's customers"),
            ("100.127.255.255", "shared by a carrier's customers"),
            ("100.128.0.0", "public"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.255", "loopback"),
            ("128.0.0.0", "public"),
            ("168.63.129.16", "the cloud's own"),
            ("169.253.255.255", "public"),
            ("169.254.169.254", "link-local"),
            ("169.255.0.0", "public"),
            ("172.15.255.255", "public"),
            ("172.16.0.0", "private"),
            ("172.31.255.255", "private"),
            ("172.32.0.0", "public"),
            ("192.0.0.192", "reserved"),
            ("192.0.2.1", "for documentation"),
            ("192.88.99.1", "reserved"),
            ("192.167.255.255", "public"),
            ("192.168.0.0", "private"),
            ("192.169.0.0", "public"),
            ("198.17.255.255", "public"),
            ("198.18.0.0", "for benchmarks"),
            ("198.19.255.255", "for benchmarks"),
            ("198.51.100.7", "for documentation"),
            ("203.0.113.7", "for documentation"),
            ("223.255.255.255", "public"),
            ("224.0.0.1", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("100::1", "reserved"),
            ("64:ff9b:1::a00:1", "reserved"),
            ("2001::1", "reserved"),
            ("2001:1ff:ffff::", "reserved"),
            ("2001:200::1", "public"),
            ("2001:db8::1", "for documentation"),
            ("2606:4700:4700::1111", "public"),
            ("2a00:1450::1", "public"),
            ("3fff::1", "for documentation"),
            ("3fff:1000::1", "public"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::a9fe:a9fe", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "private"),
            ("ff02::1", "multicast"),
        ] {
            assert_eq!(kind(address), expected, "{address}");
        }
    }

    /// <https://datatracker.ietf.org/doc/html/rfc6052#section-2.4> and the RFCs named above.
    #[test]
    fn an_address_inside_another_one_is_what_counts() {
        for (address, expected) in [
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:169.254.169.254", "link-local"),
            ("::ffff:8.8.8.8", "public"),
            ("::ffff:0:10.0.0.1", "private"),
            ("64:ff9b::169.254.169.254", "link-local"),
            ("64:ff9b::8.8.8.8", "public"),
            ("::10.0.0.1", "private"),
            ("::127.0.0.1", "loopback"),
            ("2002:7f00:1::", "loopback"),
            ("2002:a9fe:a9fe::1", "link-local"),
            ("2002:808:808::1", "public"),
        ] {
            assert_eq!(kind(address), expected, "{address}");
        }
    }

    #[test]
    fn what_a_grant_covers_is_allowed_and_its_neighbours_are_not() {
        let nets = ["10.1.0.0/16", "fd00::/8", "127.0.0.1/32"];
        let granted = Addresses::public_and(nets.iter().map(|net| net.parse().unwrap()));
        for (address, allowed) in [
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("::ffff:10.1.0.1", true),
            ("fd12::1", true),
            ("fc00::1", false),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("169.254.169.254", false),
            ("8.8.8.8", true),
        ] {
            assert_eq!(granted.check(address.parse().unwrap()).is_ok(), allowed, "{address}");
        }
        // All of IPv6 is not the IPv4 that travels inside.
        let v6 = Addresses::public_and(["::/0".parse().unwrap()]);
        assert!(v6.check("::1".parse().unwrap()).is_ok());
        assert!(v6.check("::ffff:127.0.0.1".parse().unwrap()).is_err());
    }

    #[test]
    fn the_same_addresses_in_another_order_are_the_same_rule() {
        let of = |nets: &[&str]| Addresses::public_and(nets.iter().map(|net| net.parse().unwrap()));
        assert_eq!(of(&["10.0.0.0/8", "192.168.0.0/16"]), of(&["192.168.0.0/16", "10.1.2.3/8", "10.0.0.0/8"]));
    }
}
