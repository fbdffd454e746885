//! Tests that parameters keep their values when they are encoded and decoded, and that unsupported
//! ones are refused.

use super::*;

fn params(servers: u8, colluding: u8, preset: Preset) -> Result<S3OramParams, Error> {
    S3OramParams::new(100_000, 4096, Parties::new(servers, colluding).unwrap(), preset)
}

#[test]
fn parameters_have_one_encoding_and_round_trip() {
    for (servers, colluding, preset) in
        [(3, 1, Preset::LARGE), (5, 1, Preset::SMALL), (7, 3, Preset::LARGE)]
    {
        let params = params(servers, colluding, preset).unwrap();
        let encoded = params.encode();
        assert_eq!(S3OramParams::decode(100_000, 4096, &encoded).unwrap(), params);
        assert!(S3OramParams::decode(100_000, 4096, &encoded[1..]).is_err());
        assert!(S3OramParams::decode(100_000, 4096, &[&encoded[..], &[0]].concat()).is_err());
    }
    assert!(S3OramParams::decode(100_000, 4096, &[3, 2, 74, 0, 16, 0]).is_err());
    let in_trees = |client_entries_max| {
        let shape = MapShape { block_bytes: 1024, client_entries_max };
        params(3, 1, Preset::SMALL).unwrap().with_map_in_trees(shape)
    };
    for (entries, count) in [(4096, 2), (9, 3)] {
        let params = in_trees(entries).unwrap();
        let encoded = params.encode();
        assert_eq!((params.trees().len(), encoded.len()), (count, 14));
        assert_eq!(S3OramParams::decode(100_000, 4096, &encoded).unwrap(), params);
        for other in [&encoded[..13], &[&encoded[..], &[0]].concat()] {
            assert!(S3OramParams::decode(100_000, 4096, other).is_err());
        }
    }
    assert!(in_trees(100_000).is_err());
    assert!(S3OramParams::decode(0, 4096, &[3, 1, 74, 0, 16, 0]).is_err());
    assert!(S3OramParams::decode(u64::MAX, 4096, &[3, 1, 74, 0, 16, 0]).is_err());
    assert!(S3OramParams::decode(9, 1, &[3, 1, 74, 0, 16, 0]).is_err());
}

#[test]
fn trees_that_overflow_are_refused() {
    for preset in [Preset::PAPER, Preset::PROTOTYPE, Preset::PROTOTYPE_SMALL] {
        let error = params(3, 1, preset).unwrap_err().to_string();
        assert!(error.contains("overflows"), "{error}");
    }
}
