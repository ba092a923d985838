//! The harness of the fuzz targets, bounded: the bodies of every recorded behaviour, cut and bent, and any bytes.

#[path = "../fuzz/harness.rs"]
mod harness;

use std::fs;

use proptest::prelude::*;

/// The recorded bodies: what real servers sent.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/data/gauntlet")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            let cases: serde_json::Value =
                serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let bodies = cases
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|case| case["response"]["body"].as_str());
            seeds.extend(bodies.map(|body| body.replace("@@ID@@", "7341").into_bytes()));
        }
    }
    seeds
}

fn all(bytes: &[u8]) {
    harness::sse(bytes);
    harness::classify(bytes);
    harness::list(bytes);
    harness::jsonrpc(bytes);
}

#[test]
fn what_real_servers_sent_is_read_however_it_is_cut() {
    let seeds = seeds();
    assert!(seeds.len() > 100);
    for seed in &seeds {
        for label in 0..6 {
            for end in [seed.len(), seed.len() / 2, seed.len() / 3] {
                all(&[&[label, 0, 100, label], &seed[..end]].concat());
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        all(&bytes);
    }

    #[test]
    fn bent_bodies_are_read(seed in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8, label: u8) {
        let seeds = seeds();
        let mut body = seeds[seed.index(seeds.len())].clone();
        if !body.is_empty() {
            let at = at.index(body.len());
            body[at] = byte;
        }
        all(&[&[label, 0, 100, label], body.as_slice()].concat());
    }
}
