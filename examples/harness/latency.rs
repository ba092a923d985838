//! How long a server takes, as a pure function of which server it is: the server waits that long, and the
//! ideal schedules are computed from the same numbers.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

/// Hosts in one second octet, so that no address ends in 0 or 255.
const BLOCK: u32 = 250 * 250;

/// The loopback address of a host.
pub(crate) fn address(host: u32) -> Ipv4Addr {
    let octet = |it: u32| u8::try_from(it).expect("a harness has fewer than 15 million hosts");
    Ipv4Addr::new(
        127,
        octet(1 + host / BLOCK),
        octet(host / 250 % 250),
        octet(1 + host % 250),
    )
}

/// The host of a loopback address.
pub(crate) fn host(address: Ipv4Addr) -> u32 {
    let [_, a, b, c] = address.octets().map(u32::from);
    a.saturating_sub(1) * BLOCK + b * 250 + c.saturating_sub(1)
}

/// How long servers take to answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Latency {
    /// They answer at once.
    None,
    /// All the same.
    Fixed {
        /// Milliseconds.
        ms: f64,
    },
    /// Log-normal, and some never answer.
    Lognormal {
        /// Milliseconds.
        median_ms: f64,
        /// Of the logarithm.
        sigma: f64,
        /// Percent of the endpoints that never answer.
        hanging: f64,
    },
}

impl Latency {
    /// How long an endpoint takes. `None`: it never answers.
    pub(crate) fn of(self, host: u32, path: u32) -> Option<Duration> {
        let ms = match self {
            Self::None => 0.0,
            Self::Fixed { ms } => ms,
            Self::Lognormal {
                median_ms,
                sigma,
                hanging,
            } => {
                let seed = (u64::from(host) << 32) | u64::from(path);
                let [a, b, c] = [1, 2, 3].map(|salt| fraction(scatter(seed ^ (salt << 60))));
                if a * 100.0 < hanging {
                    return None;
                }
                // Box and Muller: two uniform numbers make a normal one.
                let normal = (-2.0 * (1.0 - b).ln()).sqrt() * (std::f64::consts::TAU * c).cos();
                median_ms * (sigma * normal).exp()
            }
        };
        Some(Duration::from_secs_f64(ms / 1000.0))
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Fixed { ms } => write!(f, "{ms}"),
            Self::Lognormal {
                median_ms,
                sigma,
                hanging,
            } => write!(f, "{median_ms},{sigma},{hanging}"),
        }
    }
}

impl FromStr for Latency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
        match (text, numbers.as_deref()) {
            ("none", _) => Ok(Self::None),
            (_, Ok(&[ms])) => Ok(Self::Fixed { ms }),
            (_, Ok(&[median_ms, sigma, hanging])) => Ok(Self::Lognormal {
                median_ms,
                sigma,
                hanging,
            }),
            _ => Err("write none, milliseconds, or median,sigma,percent hanging".to_owned()),
        }
    }
}

/// `SplitMix64`'s finisher: neighbouring seeds give numbers that have nothing to do with each other.
fn scatter(seed: u64) -> u64 {
    let mut it = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}

/// From 0 up to, and without, 1.
fn fraction(bits: u64) -> f64 {
    f64::from(u32::try_from(bits >> 32).unwrap_or(u32::MAX)) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_host_are_one_to_one() {
        for it in [0, 1, 249, 250, 62_499, 62_500, 199_999] {
            assert_eq!(host(address(it)), it);
        }
        assert_eq!(address(0), Ipv4Addr::new(127, 1, 0, 1));
    }

    #[test]
    fn half_of_the_servers_that_answer_take_longer_than_the_median() {
        let latency: Latency = "400,0.8,5".parse().unwrap();
        let taken: Vec<Option<Duration>> = (0..20_000).map(|host| latency.of(host, 0)).collect();
        let hanging = taken.iter().filter(|it| it.is_none()).count();
        let slow = taken
            .iter()
            .flatten()
            .filter(|it| it.as_millis() > 400)
            .count();
        assert!((900..1100).contains(&hanging), "{hanging}");
        assert!((9200..9800).contains(&slow), "{slow}");
    }
}
