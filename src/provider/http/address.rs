//! Which addresses a provider may live at.

use std::{
    error::Error as StdError,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Which addresses are allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    /// All but link-local and metadata addresses: models on the same machine
    /// or network are normal.
    Any,
    /// Only addresses of the public internet.
    Public,
}

/// Says that an address is refused. Found again in the chain of causes of a
/// failed connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refused {
    /// It is link-local, or hands out a cloud machine's credentials.
    Metadata,
    /// It is not of the public internet, and only those are allowed.
    NotPublic,
}

impl Reach {
    /// Checks an address, and the IPv4 address inside an IPv6 one.
    pub(crate) fn check(self, address: IpAddr) -> Result<(), Refused> {
        let inner = match address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(address) => embedded(address),
        };
        let any = |v4: fn(Ipv4Addr) -> bool, v6: fn(Ipv6Addr) -> bool| {
            inner.is_some_and(v4) || matches!(address, IpAddr::V6(address) if v6(address))
        };
        if any(is_metadata_v4, is_metadata_v6) {
            return Err(Refused::Metadata);
        }
        if self == Self::Public && any(is_private_v4, is_private_v6) {
            return Err(Refused::NotPublic);
        }
        Ok(())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metadata => "link-local and metadata addresses are never asked",
            Self::NotPublic => "only public addresses may be asked, and this one is private",
        })
    }
}

impl StdError for Refused {}

/// The IPv4 address that an IPv6 address leads to: mapped, translated,
/// compatible, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

fn is_metadata_v4(address: Ipv4Addr) -> bool {
    // Alibaba's, Azure's and Oracle's lie outside the link-local range.
    address.is_link_local()
        || matches!(address.octets(), [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192])
}

fn is_metadata_v6(address: Ipv6Addr) -> bool {
    // Amazon's and Google's lie outside the link-local range.
    address.is_unicast_link_local()
        || matches!(
            address.segments(),
            [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254]
        )
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    address.is_private()
        || address.is_loopback()
        || address.is_documentation()
        || match address.octets() {
            // This network, protocol assignments, and multicast, reserved, broadcast.
            [0 | 224.., ..] | [192, 0, 0, _] => true,
            // Carrier-grade NAT, and benchmarks.
            [100, second, ..] => second & 0xc0 == 64,
            [198, second, ..] => second & 0xfe == 18,
            _ => false,
        }
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || match address.segments() {
            // The old site-local range, and NAT64 of one's own network.
            [first, ..] if first & 0xffc0 == 0xfec0 => true,
            [0x64, 0xff9b, 1, ..] => true,
            // Teredo and its neighbours, documentation.
            [0x2001, second, ..] => second < 0x200 || second == 0xdb8,
            _ => false,
        }
}
