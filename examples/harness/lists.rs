//! The lists that are scanned: how many endpoints on which hosts, and in which order.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::latency;
use crate::server::DOMAIN;

/// An endpoint of the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: u32,
    pub(crate) path: u32,
}

/// How hosts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// As addresses.
    Addresses,
    /// As names.
    Names,
}

/// One endpoint each on so many hosts.
pub(crate) fn one_each(hosts: u32) -> Vec<Place> {
    (0..hosts).map(|host| Place { host, path: 0 }).collect()
}

/// As many endpoints on every host.
pub(crate) fn even(hosts: u32, endpoints: u32) -> Vec<Place> {
    (0..endpoints)
        .flat_map(|path| (0..hosts).map(move |host| Place { host, path }))
        .collect()
}

/// How many hosts of the registry hold how many endpoints each, by the counts of 2026-07-28:
/// 10,371 endpoints on 7,443 hosts.
const REGISTRY: [(u32, u32); 18] = [
    (1, 1279),
    (1, 216),
    (1, 120),
    (1, 99),
    (1, 57),
    (1, 54),
    (1, 52),
    (9, 29),
    (3, 28),
    (4, 16),
    (8, 15),
    (14, 7),
    (4, 6),
    (1, 5),
    (19, 4),
    (20, 3),
    (348, 2),
    (7006, 1),
];

/// A list of the registry's shape; host 0 is the largest, and the endpoints of a host stand together.
pub(crate) fn registry() -> Vec<Place> {
    let mut places = Vec::new();
    let mut host = 0;
    for (hosts, endpoints) in REGISTRY {
        for _ in 0..hosts {
            places.extend((0..endpoints).map(|path| Place { host, path }));
            host += 1;
        }
    }
    places
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The hosts anyhow, the endpoints of each together, as a registry export has them.
    Listed,
    /// By address.
    Sorted,
    /// Anyhow.
    Shuffled,
}

/// Brings a list into an order, the same each time.
pub(crate) fn ordered(mut places: Vec<Place>, order: Order) -> Vec<Place> {
    // Any fixed scatter does: neighbours only have to be parted.
    let mix = |it: u32| it.wrapping_mul(0x9e37_79b1) ^ (it >> 7);
    match order {
        Order::Listed => places.sort_by_key(|it| (mix(it.host), it.path)),
        Order::Sorted => places.sort_by_key(|it| (it.host, it.path)),
        Order::Shuffled => {
            places.sort_by_key(|it| (mix(it.host.wrapping_mul(2053) ^ it.path), it.host));
        }
    }
    places
}

/// Writes a list as text, one address a line.
pub(crate) fn write(
    folder: &Path,
    name: &str,
    places: &[Place],
    scheme: &str,
    hosts: Hosts,
    port: u16,
) -> Result<PathBuf> {
    let mut text = String::new();
    for Place { host, path } in places {
        match hosts {
            Hosts::Addresses => {
                let address = latency::address(*host);
                writeln!(text, "{scheme}://{address}:{port}/mcp/{path}")?;
            }
            Hosts::Names => writeln!(text, "{scheme}://h{host}.{DOMAIN}:{port}/mcp/{path}")?,
        }
    }
    let file = folder.join(format!("{name}.txt"));
    std::fs::write(&file, text)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_registry_has_its_counts_in_every_order() {
        for order in [Order::Listed, Order::Sorted, Order::Shuffled] {
            let places = ordered(registry(), order);
            let hosts: HashSet<u32> = places.iter().map(|it| it.host).collect();
            assert_eq!((places.len(), hosts.len()), (10_371, 7_443));
            assert_eq!(places.iter().filter(|it| it.host == 0).count(), 1279);
        }
    }
}
